//! The logs of runs in an SQLite file, where they stand in the order of time.

use std::{fs, path::Path, sync::Arc};

use agui_server::store::{EventBatch, Lease, Retention, RunNumber, SqliteStore};
use rusqlite::Connection;
use tempfile::tempdir;

use crate::store::steps::{DynStore, NOW, OWNER, batch, delete, events, finish, lease, log};

const RUNS: usize = 250;
/// The longest log has several steps of reading backwards.
const BATCHES: u64 = 700;

async fn open(path: &Path) -> DynStore {
    Arc::new(SqliteStore::open(path).await.unwrap())
}

async fn leases(store: &DynStore, count: usize) -> Vec<Lease> {
    let mut leases = Vec::new();
    for thread in 0..count {
        leases.push(lease(store, &format!("t{thread}"), "r").await);
    }
    leases
}

/// Appends two events to each log, in batches that alternate.
async fn append_in_turns(store: &DynStore, leases: &[Lease], batches: u64) {
    for round in 0..batches {
        let batches: Vec<_> = leases.iter().map(|lease| batch(lease, 1 + 2 * round, 2)).collect();
        assert!(store.append(&batches).await.unwrap().into_iter().all(|held| held));
    }
}

fn rows_of(path: &Path, run: RunNumber) -> i64 {
    let count = "SELECT COUNT(*) + (SELECT COUNT(*) FROM agui_log_ends WHERE run = ?1) FROM agui_events WHERE run = ?1";
    Connection::open(path).unwrap().query_row(count, [run.0], |row| row.get(0)).unwrap()
}

#[tokio::test]
async fn a_write_of_many_runs_changes_few_pages() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("threads.db");
    let store = open(&path).await;
    let leases = leases(&store, RUNS).await;
    append_in_turns(&store, &leases, 9).await;
    let log_bytes = || fs::metadata(folder.path().join("threads.db-wal")).unwrap().len();
    let before = log_bytes();
    let event = || vec!["x".repeat(100)];
    let batches = leases.iter().map(|lease| EventBatch { events: event(), ..batch(lease, 19, 1) });
    store.append(&batches.collect::<Vec<_>>()).await.unwrap();
    let written = log_bytes() - before;
    // The events themselves have 25,000 bytes; a page of its own for each run would be 1 MB.
    assert!(written < 100_000, "{written}");
}

#[tokio::test]
async fn a_log_among_others_is_read_from_any_event() {
    let folder = tempdir().unwrap();
    let store = open(&folder.path().join("threads.db")).await;
    let leases = leases(&store, 3).await;
    append_in_turns(&store, &leases, BATCHES).await;
    let last = 2 * BATCHES;
    for after in (0..last).step_by(7).chain([510, 511, 512, 513, 1023, 1024, 1025, last - 1]) {
        for run in leases.iter().map(|lease| lease.run) {
            let read = store.events(OWNER, run, after, usize::MAX).await.unwrap().unwrap();
            assert_eq!((read.first, read.count), (after + 1, last));
            assert_eq!(read.events, events(after + 1, last - after), "{after}");
        }
    }
}

/// Older rows are deleted first: the rest can be read from the end of the log, and so can be
/// deleted.
#[tokio::test]
async fn a_deletion_that_was_interrupted_or_finds_damage_is_completed() {
    let damages = [
        "DELETE FROM agui_events WHERE run = :run AND last < 300",
        "DELETE FROM agui_events WHERE run = :run AND last BETWEEN 300 AND 600",
        "DELETE FROM agui_events WHERE run = :run AND last > 300",
        "UPDATE agui_events SET previous = number WHERE run = :run",
        "DELETE FROM agui_runs WHERE number = :run",
    ];
    for damage in damages {
        for is_thread in [false, true] {
            let folder = tempdir().unwrap();
            let path = folder.path().join("threads.db");
            let store = open(&path).await;
            let leases = leases(&store, 3).await;
            append_in_turns(&store, &leases, BATCHES).await;
            let deleted = leases[1].run;
            finish(&store, &leases[1], NOW - 1000).await;
            Connection::open(&path)
                .unwrap()
                .execute(&damage.replace(":run", &deleted.to_string()), [])
                .unwrap();
            let mut retention = Retention::default();
            if is_thread {
                delete(&store, "t1").await;
            } else {
                retention.log_age = Some(500);
            }
            store.sweep(&retention, NOW).await.unwrap();
            assert_eq!(rows_of(&path, deleted), 0, "{damage} {is_thread}");
            for kept in [&leases[0], &leases[2]] {
                assert_eq!(log(&store, kept.run).await, events(1, 2 * BATCHES));
            }
        }
    }
}
