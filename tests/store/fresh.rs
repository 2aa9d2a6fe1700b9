//! Runs on new threads in a file of SQLite, which begin before they are written.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use agui_server::store::{Begin, CancelRequest, NewRun, Sql, Store as _, ThreadPage};
use sqlx::{Connection as _, SqliteConnection, sqlite::SqliteConnectOptions};
use tempfile::{TempDir, tempdir};

use crate::backends::{NOW, Shared, batch, begun, ended_at, finish, new_run, said};

fn foreground(thread: &str, run: &str) -> NewRun {
    NewRun { detached: false, ..new_run(thread, run) }
}

/// A new store, where it lives, and the file.
async fn opened() -> (TempDir, PathBuf, Shared) {
    let folder = tempdir().unwrap();
    let path = folder.path().join("threads.db");
    let store = Arc::new(Sql::sqlite(&path).await.unwrap());
    (folder, path, store)
}

/// Somebody else who has locked the file: nothing can be written.
async fn locked(path: &Path) -> SqliteConnection {
    let mut other = SqliteConnection::connect_with(&SqliteConnectOptions::new().filename(path)).await.unwrap();
    sqlx::raw_sql("BEGIN IMMEDIATE").execute(&mut other).await.unwrap();
    other
}

#[tokio::test]
async fn it_waits_for_nothing_and_whoever_asks_for_it_waits() {
    let (_folder, path, store) = opened().await;
    let other = locked(&path).await;
    let (lease, thread, replaced) = begun(&store, foreground("new", "r")).await;
    assert_eq!((lease.token, thread.version, replaced), (1, 0, false));
    assert!(store.thread(&"another".into()).await.unwrap().is_none(), "it waits for nobody");
    let asked = |id: &'static str| {
        let store = store.clone();
        tokio::spawn(async move { store.thread(&id.into()).await.unwrap() })
    };
    let second = {
        let store = store.clone();
        tokio::spawn(async move { store.begin(&foreground("new", "r2")).await.unwrap() })
    };
    let asked = asked("new");
    tokio::task::yield_now().await;
    assert!(!asked.is_finished() && !second.is_finished(), "nothing can have been written");
    other.close().await.unwrap();
    assert_eq!(asked.await.unwrap().unwrap(), thread);
    let Begin::Busy { run, lost: None } = second.await.unwrap() else { panic!("two runs on a thread") };
    assert_eq!((run.run_id, run.number, run.started_at), ("r".into(), lease.run_number, NOW));
}

/// It is asked for in every way; each waits for it by itself.
#[tokio::test]
async fn it_is_there_for_whoever_asks() {
    let (_folder, _, store) = opened().await;
    let mut number = 0;
    let mut next = async || {
        number += 1;
        begun(&store, foreground(&number.to_string(), "r")).await.0
    };
    let here = next().await;
    assert!(store.renew("here", NOW).await.unwrap().iter().any(|held| held.thread_id == here.thread_id));
    let page = ThreadPage { after: None, limit: 99 };
    let here = next().await;
    assert!(store.threads(None, &page).await.unwrap().iter().any(|thread| thread.id == here.thread_id));
    let here = next().await;
    assert!(store.run(&here.thread_id, &here.run_id).await.unwrap().is_some());
    let here = next().await;
    assert_eq!(store.runs(&here.thread_id, 9).await.unwrap().len(), 1);
    let here = next().await;
    assert!(store.events(&here.thread_id, &here.run_id, 0, 99).await.unwrap().is_some());
    let here = next().await;
    let asked = store.request_cancel(&here.thread_id, &here.run_id).await.unwrap();
    assert_eq!(asked, CancelRequest::Requested);
    let here = next().await;
    assert!(store.lost("new", NOW, 99).await.unwrap().contains(&here));
    let here = next().await;
    assert!(store.take_over(&here, "new", NOW, NOW).await.unwrap().is_some());
    let here = next().await;
    assert!(store.delete(&here.thread_id).await.unwrap());
    let here = next().await;
    assert_eq!(store.append(&[batch(&here, 1, 1)]).await.unwrap(), [true]);
    let here = next().await;
    finish(&store, &here, NOW).await;
    let here = next().await;
    store.save(&here, &said("hello")).await.unwrap();
}

/// After a write that failed, runs are written before they begin; what had begun meanwhile is written with its end.
#[tokio::test]
async fn nothing_begins_that_may_have_no_end() {
    let (_folder, path, store) = opened().await;
    let other = locked(&path).await;
    let (lease, ..) = begun(&store, foreground("begun", "r")).await;
    assert!(
        store.finish(&lease, None, None, &ended_at(NOW)).await.unwrap_err().is_transient(),
        "nothing can be written"
    );
    assert!(store.begin(&foreground("refused", "r")).await.unwrap_err().is_transient());
    other.close().await.unwrap();
    finish(&store, &lease, NOW).await;
    assert!(store.run(&"begun".into(), &"r".into()).await.unwrap().unwrap().ended_at.is_some());
    assert!(store.thread(&"refused".into()).await.unwrap().is_none());
    let other = locked(&path).await;
    begun(&store, foreground("at once again", "r")).await;
    drop(other);
}

/// More than are read before the file is open.
#[tokio::test]
async fn threads_that_are_there_are_not_taken_for_new() {
    const THREADS: usize = 2_500;
    let folder = tempdir().unwrap();
    let path = folder.path().join("threads.db");
    let store = Sql::sqlite(&path).await.unwrap();
    let name = |number| if number == 0 { String::new() } else { format!("thread {number}") };
    for number in 0..THREADS {
        let run = NewRun { owner: Some("ann".to_owned()), ..foreground(&name(number), "r") };
        assert!(matches!(store.begin(&run).await.unwrap(), Begin::Begun { .. }));
    }
    store.close().await;
    drop(store);
    let store = Sql::sqlite(&path).await.unwrap();
    for number in (0..THREADS).step_by(7).collect::<Vec<_>>().into_iter().rev() {
        let run = NewRun { owner: Some("bob".to_owned()), ..foreground(&name(number), "r") };
        assert!(matches!(store.begin(&run).await.unwrap(), Begin::NotYours), "{number}");
    }
    // By now all are known, and a new one is new.
    let other = locked(&path).await;
    assert!(matches!(store.begin(&foreground("new", "r")).await.unwrap(), Begin::Begun { .. }));
    drop(other);
}

/// A process that is gone had begun runs, which the next one finds.
#[tokio::test]
async fn what_has_begun_is_written_when_the_store_is_closed() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("threads.db");
    let store = Sql::sqlite(&path).await.unwrap();
    for number in 0..100 {
        store.begin(&foreground(&number.to_string(), "r")).await.unwrap();
    }
    store.close().await;
    assert!(store.begin(&foreground("late", "r")).await.unwrap_err().is_transient());
    drop(store);
    let store = Sql::sqlite(&path).await.unwrap();
    assert_eq!(store.lost("new", NOW, 999).await.unwrap().len(), 100);
}
