//! A file of SQLite: kept, kept from others, damaged, somewhere it cannot be, and on a disk that is full.

use std::{
    fs,
    path::Path,
    process::Command,
    sync::Arc,
    time::{Duration, Instant},
};

use agui_server::store::{NewRun, OpenError, Retention, Sql, Store as _, StoreError};
use sqlx::{AssertSqlSafe, Connection as _, Row as _, SqliteConnection, sqlite::SqliteConnectOptions};
use tempfile::tempdir;

use crate::backends::{NOW, Shared, at, batch, begun, ended_at, ended_run, events, finish, lease, log, new_run, said};

async fn open(path: &Path) -> Shared {
    Arc::new(Sql::sqlite(path).await.unwrap())
}

async fn refusal(path: &Path) -> (OpenError, String) {
    let error = Sql::sqlite(path).await.unwrap_err();
    let text = error.to_string();
    assert!(text.contains(&path.file_name().unwrap().to_string_lossy().into_owned()), "{text}");
    (error, text)
}

/// What SQLite itself thinks of the file.
pub(crate) async fn quick_check(path: &Path) -> String {
    let mut conn = SqliteConnection::connect_with(&SqliteConnectOptions::new().filename(path)).await.unwrap();
    let verdict = sqlx::query("PRAGMA quick_check").fetch_one(&mut conn).await.unwrap().get(0);
    conn.close().await.unwrap();
    verdict
}

#[tokio::test]
async fn everything_is_there_when_it_is_opened_again() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("new/folders/and a ? #name%41 é.db");
    let running = {
        let store = open(&path).await;
        ended_run(&store, "t", "r", NOW).await;
        let running = lease(&store, "t", "s").await;
        store.save(&running, &said("x")).await.unwrap();
        store.append(&[batch(&running, 1, 3)]).await.unwrap();
        running
    };
    let store = open(&path).await;
    assert_eq!(log(&store, "t", "r").await, events(1, 1));
    assert_eq!(log(&store, "t", "s").await, events(1, 3));
    assert_eq!(store.thread(&"t".into()).await.unwrap().unwrap().content, said("x"));
    // This is another process, as far as leases go: the run is nobody's, however long its lease would last.
    assert_eq!(store.lost("now", NOW, 9).await.unwrap(), std::slice::from_ref(&running));
    assert!(store.take_over(&running, "now", NOW, NOW + 1).await.unwrap().is_some());
    drop(store);
    assert_eq!(quick_check(&path).await, "ok");
}

/// Also after one that was never recorded, for nobody ended it.
#[tokio::test]
async fn no_number_is_used_again_when_it_is_opened_again() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("threads.db");
    let mut numbers = Vec::new();
    for (thread, detached, ends) in [("a", true, true), ("b", false, true), ("c", false, false), ("d", true, false)] {
        let store = open(&path).await;
        let (lease, ..) = begun(&store, NewRun { detached, ..new_run(thread, "r") }).await;
        assert!(store.thread(&thread.into()).await.unwrap().is_some(), "whatever has begun is written now");
        numbers.push(lease.run_number);
        if ends {
            finish(&store, &lease, NOW).await;
        }
        store.delete(&"a".into()).await.unwrap();
    }
    assert!(numbers.is_sorted_by(|one, next| one < next), "{numbers:?}");
}

/// What nobody can ask for any more takes no room.
#[tokio::test]
async fn what_is_removed_leaves_no_rows() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("threads.db");
    let store = open(&path).await;
    for _ in 0..2 {
        ended_run(&store, "replaced", "r", NOW).await;
    }
    for thread in ["deleted", "old"] {
        ended_run(&store, thread, "r", NOW - 10).await;
        let (last, ..) = begun(&store, at(NOW - 9, new_run(thread, "s"))).await;
        store.finish(&last, Some(&said("x")), Some(&batch(&last, 1, 1)), &ended_at(NOW - 9)).await.unwrap();
    }
    store.delete(&"deleted".into()).await.unwrap();
    let mut conn = SqliteConnection::connect_with(&SqliteConnectOptions::new().filename(&path)).await.unwrap();
    let mut rows = async |table: &'static str| -> i64 {
        sqlx::query(AssertSqlSafe(format!("SELECT COUNT(*) FROM {table}"))).fetch_one(&mut conn).await.unwrap().get(0)
    };
    assert_eq!((rows("agui_log").await, rows("agui_runs").await, rows("agui_contents").await), (3, 3, 1));
    let old = Retention { thread_age: Some(5), ..Retention::default() };
    assert_eq!(store.prune(&old, NOW).await.unwrap().threads, 1);
    assert_eq!((rows("agui_log").await, rows("agui_runs").await, rows("agui_contents").await), (1, 1, 0));
    store.prune(&Retention { logs: Some(0), ..Retention::default() }, NOW).await.unwrap();
    assert_eq!((rows("agui_log").await, rows("agui_runs").await, rows("agui_threads").await), (0, 1, 1));
}

#[cfg(unix)]
#[tokio::test]
async fn conversations_are_for_this_user_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempdir().unwrap();
    let path = folder.path().join("threads.db");
    let store = open(&path).await;
    ended_run(&store, "t", "r", NOW).await;
    for file in fs::read_dir(folder.path()).unwrap() {
        let file = file.unwrap();
        let is_lock = file.path().extension().is_some_and(|extension| extension == "lock");
        let mode = file.metadata().unwrap().permissions().mode();
        assert!(is_lock || mode & 0o077 == 0, "{} {mode:o}", file.path().display());
    }
}

#[tokio::test]
async fn a_file_is_one_store_at_a_time() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("threads.db");
    let store = open(&path).await;
    let (error, text) = refusal(&path).await;
    assert!(matches!(error, OpenError::InUse { .. }) && text.contains("in use by another agui-server"), "{text}");
    #[cfg(unix)]
    {
        // Not by another name, either.
        let link = folder.path().join("link.db");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert!(matches!(Sql::sqlite(&link).await.unwrap_err(), OpenError::InUse { .. }));
    }
    drop(store);
    open(&path).await.check().await.unwrap();
}

#[tokio::test]
async fn what_is_no_database_is_told_so() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("notes.txt");
    fs::write(&path, "dear diary, ".repeat(1000)).unwrap();
    let (error, text) = refusal(&path).await;
    assert!(matches!(error, OpenError::Corrupt { .. }) && text.contains("quick_check"), "{text}");
    assert!(fs::read_to_string(&path).unwrap().starts_with("dear diary"), "it is left as it is");
}

#[tokio::test]
async fn a_damaged_database_is_told_so() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("threads.db");
    let store = Arc::new(Sql::sqlite(&path).await.unwrap());
    let shared: Shared = store.clone();
    for thread in 0..200 {
        ended_run(&shared, &format!("t{thread}"), "r", NOW).await;
    }
    // Everything is in the file then, and nothing in SQLite's log.
    store.close().await;
    assert!(store.check().await.unwrap_err().is_transient());
    drop((store, shared));
    let whole = fs::read(&path).unwrap();
    let mut damaged = whole.clone();
    damaged[4096..].fill(0xa5);
    fs::write(&path, &damaged).unwrap();
    match Sql::sqlite(&path).await {
        Err(error) => assert!(matches!(error, OpenError::Corrupt { .. }), "{error}"),
        Ok(store) => panic!("{store:?}"),
    }
    // Damage that is noticed later is no reason to try again.
    let mut damaged = whole;
    let middle = damaged.len() / 2;
    damaged[middle..].fill(0xa5);
    fs::write(&path, &damaged).unwrap();
    if let Ok(store) = Sql::sqlite(&path).await {
        let store: Shared = Arc::new(store);
        let mut faults = 0;
        for thread in 0..200 {
            if let Err(error) = store.events(&format!("t{thread}").into(), &"r".into(), 0, 99).await {
                assert!(!error.is_transient(), "{error:?}");
                faults += 1;
            }
        }
        assert!(faults > 0);
    }
}

#[tokio::test]
async fn a_place_where_no_file_can_be_is_told_so() {
    let folder = tempdir().unwrap();
    fs::write(folder.path().join("file"), "").unwrap();
    let (error, text) = refusal(&folder.path().join("file/threads.db")).await;
    assert!(matches!(error, OpenError::File { .. }), "{text}");
    let (error, text) = refusal(Path::new("/proc/threads.db")).await;
    assert!(matches!(error, OpenError::File { .. }), "{text}");
    fs::create_dir(folder.path().join("folder.db")).unwrap();
    let (error, text) = refusal(&folder.path().join("folder.db")).await;
    assert!(matches!(error, OpenError::File { .. }), "{text}");
}

#[tokio::test]
async fn a_newer_database_is_left_alone() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("threads.db");
    drop(open(&path).await);
    let mut conn = SqliteConnection::connect_with(&SqliteConnectOptions::new().filename(&path)).await.unwrap();
    sqlx::raw_sql("INSERT INTO agui_schema (version) VALUES (4711)").execute(&mut conn).await.unwrap();
    conn.close().await.unwrap();
    let (error, text) = refusal(&path).await;
    assert!(matches!(error, OpenError::Newer { found: 4711, .. }) && text.contains("newer agui-server"), "{text}");
}

/// A backup may lock the file for a moment; a run waits for it. One that lasts is told as passing.
#[tokio::test]
async fn a_locked_file_is_waited_for() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("threads.db");
    let store = open(&path).await;
    let mut other = SqliteConnection::connect_with(&SqliteConnectOptions::new().filename(&path)).await.unwrap();
    sqlx::raw_sql("BEGIN IMMEDIATE").execute(&mut other).await.unwrap();
    let begin = Instant::now();
    let error = store.begin(&new_run("t", "r")).await.unwrap_err();
    assert!(error.is_transient() && begin.elapsed() < Duration::from_secs(8), "{error:?}");
    let waiting = {
        let store = store.clone();
        tokio::spawn(async move { begun(&store, new_run("t", "r")).await })
    };
    assert!(store.thread(&"t".into()).await.unwrap().is_none(), "readers do not wait");
    sqlx::raw_sql("COMMIT").execute(&mut other).await.unwrap();
    waiting.await.unwrap();
}

/// A disk of three megabytes, gone with the test.
struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    fn mount() -> Option<Self> {
        let folder = tempdir().unwrap();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=3m", "tmpfs"]).arg(folder.path());
        let mounted = mount.output().is_ok_and(|mount| mount.status.success());
        mounted.then_some(Self(folder))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0.path()).status();
    }
}

#[tokio::test]
async fn a_full_disk_passes() {
    let Some(disk) = SmallDisk::mount() else {
        println!("skipped: only root can mount a disk that is full");
        return;
    };
    let filler = disk.0.path().join("filler");
    fs::write(&filler, vec![1; 1_500_000]).unwrap();
    let path = disk.0.path().join("threads.db");
    let store = open(&path).await;
    let lease = lease(&store, "t", "r").await;
    let mut next = 1;
    let error = loop {
        match store.append(&[batch(&lease, next, 500)]).await {
            Ok(there) => assert_eq!(there, [true]),
            Err(error) => break error,
        }
        next += 500;
        assert!(next < 1_000_000, "the disk is never full");
    };
    assert!(matches!(error, StoreError::Unavailable(_)), "{error:?}");
    for _ in 0..3 {
        assert!(store.append(&[batch(&lease, next, 500)]).await.unwrap_err().is_transient());
        assert_eq!(log(&store, "t", "r").await.len() as u64, next - 1, "what is there can be read");
    }
    fs::remove_file(&filler).unwrap();
    assert_eq!(store.append(&[batch(&lease, next, 500)]).await.unwrap(), [true]);
    assert!(log(&store, "t", "r").await == events(1, next + 499));
    drop(store);
    assert_eq!(quick_check(&path).await, "ok");
}
