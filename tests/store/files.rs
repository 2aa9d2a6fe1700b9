//! The file of the SQLite store: reopened, locked, damaged, unusable, and on a full disk.

use std::{
    fs,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use agui_server::store::{OpenError, Retention, SqliteStore, StoreError, ThreadKey, ThreadPage};
use rusqlite::Connection;
use serde_json::json;
use tempfile::tempdir;
use tokio::time::timeout;

use crate::{
    store::steps::{
        DynStore, NOW, TestEnd, TestRun, assistant, batch, branch, delete, end_at, ended_run,
        events, exists, finish, key, lease, log, run, thread, user,
    },
    support::small_disk::SmallDisk,
};

async fn open(path: &Path) -> DynStore {
    Arc::new(SqliteStore::open(path).await.unwrap())
}

async fn refusal(path: &Path) -> (OpenError, String) {
    let error = SqliteStore::open(path).await.unwrap_err();
    let text = error.to_string();
    assert!(text.contains(&path.file_name().unwrap().to_string_lossy().into_owned()), "{text}");
    (error, text)
}

/// Returns the result of SQLite's check of the file.
pub(crate) fn quick_check(path: &Path) -> String {
    query(path, "PRAGMA quick_check")
}

fn query<T: rusqlite::types::FromSql>(path: &Path, sql: &str) -> T {
    Connection::open(path).unwrap().query_row(sql, [], |row| row.get(0)).unwrap()
}

#[tokio::test]
async fn a_reopened_file_has_all_content() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("new/folders/and a ? #name%41 é.db");
    let (ended, running) = {
        let store = open(&path).await;
        let ended = ended_run(&store, run("t", "r").with([user("u")])).await;
        let running = run("t", "s").with([user("x")]).begun(&store).await;
        store.append(&[batch(&running, 1, 3)]).await.unwrap();
        (ended, running)
    };
    let store = open(&path).await;
    assert_eq!(log(&store, ended.run).await, events(1, 1));
    assert_eq!(log(&store, running.run).await, events(1, 3));
    assert!(branch(&thread(&store, "t").await).ends_with('x'));
    // A process that opens the file is another one than the holder: the run is lost, however long its lease would last.
    assert_eq!(store.lost_runs("now", NOW, 9).await.unwrap()[0].lease, running);
    assert!(store.take_over(&running, "now", NOW, NOW + 1).await.unwrap().is_some());
    drop(store);
    assert_eq!(quick_check(&path), "ok");
}

#[tokio::test]
async fn numbers_are_not_reused_after_a_restart() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("threads.db");
    let (mut threads, mut runs) = (Vec::new(), Vec::new());
    for (thread, ends) in [("a", true), ("b", false), ("c", true), ("d", false)] {
        let store = open(&path).await;
        let lease = lease(&store, thread, "r").await;
        threads.push(lease.thread);
        runs.push(lease.run);
        if ends {
            finish(&store, &lease, NOW).await;
        }
        if thread == "b" {
            delete(&store, "a").await;
        }
    }
    assert!(
        threads.is_sorted_by(|one, next| one < next) && runs.is_sorted_by(|one, next| one < next)
    );
}

#[tokio::test]
async fn removed_threads_and_logs_leave_no_rows() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("threads.db");
    let store = open(&path).await;
    for _ in 0..2 {
        ended_run(&store, run("attempts", "r").with([user("u")])).await;
    }
    for thread in ["deleted", "old"] {
        ended_run(&store, run(thread, "r").at(NOW - 10)).await;
        let begin = TestRun { state: Some(json!(1)), ..run(thread, "s").at(NOW - 9) };
        let last = begin.with([user("u")]).begun(&store).await;
        let end = TestEnd {
            state: Some(json!(2)),
            ..end_at(NOW - 9).with([assistant("a")]).last(batch(&last, 1, 1))
        };
        end.finish(&store, &last, 1).await.unwrap();
    }
    let rows = || {
        ["threads", "messages", "states", "runs", "events"]
            .map(|table| query::<i64>(&path, &format!("SELECT COUNT(*) FROM agui_{table}")))
    };
    assert_eq!(rows(), [3, 6, 4, 6, 6]);
    delete(&store, "deleted").await;
    assert_eq!(rows(), [2, 4, 2, 4, 4]);
    let mut old = Retention::default();
    old.thread_age = Some(5);
    assert_eq!(store.sweep(&old, NOW).await.unwrap().threads, 1);
    assert_eq!(rows(), [1, 2, 0, 2, 2]);
    let mut no_logs = Retention::default();
    no_logs.logs = Some(0);
    store.sweep(&no_logs, NOW).await.unwrap();
    assert_eq!(rows(), [1, 2, 0, 2, 0]);
}

/// Returns the bytes of all files in the folder.
fn bytes_of_all_files(folder: &Path) -> Vec<u8> {
    fs::read_dir(folder).unwrap().flat_map(|file| fs::read(file.unwrap().path()).unwrap()).collect()
}

fn contains(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

#[tokio::test]
async fn no_file_has_the_text_of_a_deleted_thread() {
    let folder = tempdir().unwrap();
    let store = open(&folder.path().join("threads.db")).await;
    let secret = "the-launch-code-is-0000";
    for kept in ["kept", "also kept"] {
        ended_run(&store, run(kept, "r").with([user("harmless")])).await;
    }
    let lease = run("t", "r").with([user(secret)]).begun(&store).await;
    store.append(&[batch(&lease, 1, 3)]).await.unwrap();
    end_at(NOW)
        .with([assistant(secret), assistant(&secret.repeat(5000))])
        .finish(&store, &lease, 1)
        .await
        .unwrap();
    // The search index has the words "launch" and "code" now.
    let mut search = ThreadPage::first(9);
    search.query = Some("launch-code".to_owned());
    assert_eq!(store.threads(ThreadKey::ANONYMOUS, &search).await.unwrap().len(), 1);
    assert!(contains(&bytes_of_all_files(folder.path()), secret), "the test sees what is stored");
    let size = || {
        fs::read_dir(folder.path())
            .unwrap()
            .map(|file| file.unwrap().metadata().unwrap().len())
            .sum::<u64>()
    };
    let before = size();
    delete(&store, "t").await;
    for gone in [secret, "launch"] {
        assert!(!contains(&bytes_of_all_files(folder.path()), gone), "{gone}");
    }
    assert!(before - size() > 100_000, "the space is given back: {before} {}", size());
    assert!(exists(&store, "kept").await);
}

#[tokio::test]
async fn a_sweep_returns_free_pages_to_the_file_system() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("threads.db");
    let store = open(&path).await;
    for thread in 0..300 {
        ended_run(&store, run(&thread.to_string(), "r").with([user(&"long ".repeat(2000))])).await;
    }
    let mut one_thread = Retention::default();
    one_thread.owner_threads = Some(1);
    assert_eq!(store.sweep(&one_thread, NOW).await.unwrap().threads, 299);
    assert!(fs::metadata(&path).unwrap().len() < 500_000, "{}", fs::metadata(&path).unwrap().len());
    assert!(query::<i64>(&path, "PRAGMA freelist_count") == 0);
}

/// The file was created without `auto_vacuum`, as one that is restored from a dump.
#[tokio::test]
async fn a_sweep_of_a_file_that_cannot_shrink_ends() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("threads.db");
    Connection::open(&path).unwrap().execute_batch("CREATE TABLE other (number INTEGER)").unwrap();
    let store = open(&path).await;
    ended_run(&store, run("t", "r").with([user(&"long ".repeat(20_000))])).await;
    delete(&store, "t").await;
    assert!(query::<i64>(&path, "PRAGMA freelist_count") > 0);
    timeout(Duration::from_secs(20), store.sweep(&Retention::default(), NOW))
        .await
        .unwrap()
        .unwrap();
}

#[cfg(unix)]
#[tokio::test]
async fn only_this_user_may_read_the_files() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempdir().unwrap();
    let path = folder.path().join("threads.db");
    let store = open(&path).await;
    ended_run(&store, run("t", "r")).await;
    for file in fs::read_dir(folder.path()).unwrap() {
        let file = file.unwrap();
        let mode = file.metadata().unwrap().permissions().mode();
        assert!(mode & 0o077 == 0, "{} {mode:o}", file.path().display());
    }
}

#[tokio::test]
async fn a_file_belongs_to_one_store_at_a_time() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("threads.db");
    let store = open(&path).await;
    let (error, text) = refusal(&path).await;
    assert!(
        matches!(error, OpenError::InUse { .. }) && text.contains("in use by another agui-server"),
        "{text}"
    );
    #[cfg(unix)]
    {
        // A link to the file does not open it either.
        let link = folder.path().join("link.db");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert!(matches!(SqliteStore::open(&link).await.unwrap_err(), OpenError::InUse { .. }));
    }
    drop(store);
    open(&path).await.check().await.unwrap();
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_removed_lock_file_lets_no_second_store_in() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("threads.db");
    let lock_file = folder.path().join("threads.db.lock");
    let store = open(&path).await;
    for _ in 0..2 {
        fs::remove_file(&lock_file).unwrap();
        assert!(matches!(SqliteStore::open(&path).await.unwrap_err(), OpenError::InUse { .. }));
    }
    // The first store is not disturbed by the attempts.
    ended_run(&store, run("t", "r")).await;
    drop(store);
    assert!(exists(&open(&path).await, "t").await);
}

#[tokio::test]
async fn a_file_that_is_not_a_database_is_reported_and_not_changed() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("notes.txt");
    fs::write(&path, "dear diary, ".repeat(1000)).unwrap();
    let (error, text) = refusal(&path).await;
    assert!(matches!(error, OpenError::Corrupt { .. }) && text.contains("quick_check"), "{text}");
    assert!(fs::read_to_string(&path).unwrap().starts_with("dear diary"), "it is left as it is");
}

#[tokio::test]
async fn a_damaged_file_is_reported() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("threads.db");
    let store = open(&path).await;
    let mut runs = Vec::new();
    for thread in 0..200 {
        runs.push(ended_run(&store, run(&format!("t{thread}"), "r")).await.run);
    }
    // After the last connection is closed, everything is in the file and nothing in SQLite's log.
    drop(store);
    let whole = fs::read(&path).unwrap();
    let mut damaged = whole.clone();
    damaged[4096..].fill(0xa5);
    fs::write(&path, &damaged).unwrap();
    match SqliteStore::open(&path).await {
        Err(error) => assert!(matches!(error, OpenError::Corrupt { .. }), "{error}"),
        Ok(store) => panic!("{store:?}"),
    }
    // Damage that is noticed later is no reason to try again.
    let mut damaged = whole;
    let middle = damaged.len() / 2;
    damaged[middle..].fill(0xa5);
    fs::write(&path, &damaged).unwrap();
    if let Ok(store) = SqliteStore::open(&path).await {
        let store: DynStore = Arc::new(store);
        let mut faults = 0;
        for run in runs {
            if let Err(error) = store.events(crate::store::steps::OWNER, run, 0, 99).await {
                assert!(!error.is_transient(), "{error:?}");
                faults += 1;
            }
        }
        assert!(faults > 0);
    }
}

#[tokio::test]
async fn an_unusable_path_is_reported() {
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
async fn a_file_of_another_version_is_not_changed() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("threads.db");
    drop(open(&path).await);
    Connection::open(&path).unwrap().execute("UPDATE agui_schema SET version = 4711", []).unwrap();
    let (error, text) = refusal(&path).await;
    assert!(
        matches!(error, OpenError::Version { found: 4711, .. }) && text.contains("4711"),
        "{text}"
    );
}

/// A write waits for a short lock, such as that of a backup. A longer lock is a transient error.
#[tokio::test]
async fn a_write_waits_for_a_lock_of_another_process() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("threads.db");
    let store = open(&path).await;
    let other = Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let begin = Instant::now();
    let error = run("t", "r").try_begin(&store, None, 0, None).await.unwrap_err();
    assert!(error.is_transient() && begin.elapsed() < Duration::from_secs(20), "{error:?}");
    let waiting = {
        let store = store.clone();
        tokio::spawn(async move { run("t", "r").begun(&store).await })
    };
    assert!(!exists(&store, "t").await, "readers do not wait");
    other.execute_batch("COMMIT").unwrap();
    waiting.await.unwrap();
    assert!(store.thread(&key("t"), Default::default()).await.unwrap().is_some());
}

#[tokio::test]
async fn a_full_disk_is_a_transient_error() {
    let Some(disk) = SmallDisk::mount() else { return };
    let filler = disk.path().join("filler");
    fs::write(&filler, vec![1; 1_500_000]).unwrap();
    let path = disk.path().join("threads.db");
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
        assert_eq!(
            log(&store, lease.run).await.len() as u64,
            next - 1,
            "what is there can be read"
        );
    }
    fs::remove_file(&filler).unwrap();
    // The store looks for space once a second.
    while let Err(error) = store.append(&[batch(&lease, next, 500)]).await {
        assert!(error.is_transient(), "{error:?}");
        tokio::task::yield_now().await;
    }
    assert!(log(&store, lease.run).await == events(1, next + 499));
    drop(store);
    assert_eq!(quick_check(&path), "ok");
}
