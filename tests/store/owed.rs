//! The purge and the truncation of SQLite's log after a deletion are done later if they fail at
//! once.

use std::{
    fs,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use agui_server::store::{Retention, SqliteStore, ThreadParts};
use rusqlite::Connection;
use tempfile::tempdir;

use super::steps::{DynStore, NOW, assistant, delete, end_at, exists, key, run, user};

const SECRET: &str = "the-launch-code-is-0000";
/// The number of messages, whose purge takes several steps.
const MESSAGES: usize = 2000;

async fn open(path: &Path) -> DynStore {
    Arc::new(SqliteStore::open(path).await.unwrap())
}

/// Returns the number of times that the files have the text.
fn secrets(folder: &Path) -> usize {
    let files = fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    // The reserve for a full disk is large and has no text.
    let files = files
        .filter(|path| !path.to_string_lossy().ends_with("-reserve"))
        .map(|path| fs::read(path).unwrap());
    files
        .map(|bytes| {
            bytes.windows(SECRET.len()).filter(|window| *window == SECRET.as_bytes()).count()
        })
        .sum()
}

async fn say(store: &DynStore, thread: &str, text: &str, messages: usize) {
    let lease = run(thread, "r").with([user(text)]).begun(store).await;
    end_at(NOW).with(vec![assistant(text); messages]).finish(store, &lease, 1).await.unwrap();
}

async fn sweep(store: &DynStore) {
    store.sweep(&Retention::default(), NOW).await.unwrap();
}

#[tokio::test]
async fn a_deleted_text_leaves_the_log_after_its_reader_has_ended() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("threads.db");
    let store = open(&path).await;
    say(&store, "t", SECRET, 10).await;
    // A backup reads the file in such a transaction.
    let other = Connection::open(&path).unwrap();
    other.execute_batch("BEGIN; SELECT * FROM agui_threads").unwrap();
    delete(&store, "t").await;
    assert!(!exists(&store, "t").await);
    sweep(&store).await;
    assert!(secrets(folder.path()) > 0, "the reader needs it");
    other.execute_batch("COMMIT").unwrap();
    sweep(&store).await;
    assert_eq!(secrets(folder.path()), 0);
    let owed: i64 =
        other.query_row("SELECT COUNT(*) FROM agui_owed", [], |row| row.get(0)).unwrap();
    assert_eq!(owed, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_next_sweep_removes_a_deleted_text_while_others_read() {
    let folder = tempdir().unwrap();
    let store = open(&folder.path().join("threads.db")).await;
    say(&store, "large", &"harmless ".repeat(100), MESSAGES).await;
    let is_over = Arc::new(AtomicBool::new(false));
    let readers = (0..4).map(|_| {
        let (store, is_over) = (store.clone(), is_over.clone());
        tokio::spawn(async move {
            while !is_over.load(Ordering::Relaxed) {
                let all = ThreadParts { messages: true, ..ThreadParts::default() };
                store.thread(&key("large"), all).await.unwrap().unwrap();
            }
        })
    });
    let readers: Vec<_> = readers.collect();
    for _ in 0..10 {
        say(&store, "t", SECRET, 10).await;
        delete(&store, "t").await;
        sweep(&store).await;
        assert_eq!(secrets(folder.path()), 0);
    }
    is_over.store(true, Ordering::Relaxed);
    for reader in readers {
        reader.await.unwrap();
    }
}

#[tokio::test]
async fn a_deletion_that_the_end_of_the_process_interrupts_is_completed_by_the_next_one() {
    let [folder, left] = [tempdir().unwrap(), tempdir().unwrap()];
    let store = open(&folder.path().join("threads.db")).await;
    say(&store, "t", &SECRET.repeat(100), MESSAGES).await;
    let mut deletion = Box::pin(delete(&store, "t"));
    // Between two polls the store does at most one step of the deletion, so it stops after the first one.
    while exists(&store, "t").await {
        assert!(futures::poll!(&mut deletion).is_pending());
    }
    drop(deletion);
    // Waits for the earlier commands of the writer.
    store.check().await.unwrap();
    // A copy of the files as a killed process leaves them: a shutdown would copy the log.
    for file in fs::read_dir(folder.path()).unwrap().map(Result::unwrap) {
        fs::copy(file.path(), left.path().join(file.file_name())).unwrap();
    }
    let next = open(&left.path().join("threads.db")).await;
    assert!(!exists(&next, "t").await);
    assert!(secrets(left.path()) > 0, "the deletion was not interrupted");
    sweep(&next).await;
    assert_eq!(secrets(left.path()), 0);
}
