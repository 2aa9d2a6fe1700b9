//! A full disk can be emptied: deletions, the ends of runs, and a start need no space that is not kept for them.

use std::{fs, path::Path, sync::Arc};

use agui_server::store::{Retention, SqliteStore};
use futures::future::join_all;
use serde_json::json;

use super::{
    files::quick_check,
    steps::{DynStore, NOW, TestEnd, batch, delete, end_at, exists, lease, run, user},
};
use crate::support::small_disk::SmallDisk;

async fn open(path: &Path) -> DynStore {
    Arc::new(SqliteStore::open(path).await.unwrap())
}

/// A message of 20 kB.
fn long() -> String {
    "long ".repeat(4_000)
}

/// Begins runs with such messages until the disk is full. Returns their number.
async fn fill(store: &DynStore, prefix: &str, text: &str) -> usize {
    for number in 0.. {
        let new = run(&format!("{prefix}{number}"), "r").with([user(text)]);
        match new.try_begin(store, None, 0, None).await {
            Ok(_) => assert!(number < 1000, "the disk is never full"),
            Err(error) => {
                assert!(error.is_transient(), "{error:?}");
                return number;
            }
        }
    }
    unreachable!()
}

/// Each disk ends at another place of the write-ahead log, whose length decides whether it can still be copied into the file.
#[tokio::test]
async fn a_full_disk_can_be_emptied() {
    join_all((0..8).map(|part| empty_a_full_disk(part * 12_288))).await;
}

/// `taken`: the bytes of the disk that another program has from the beginning.
async fn empty_a_full_disk(taken: u64) {
    let Some(disk) = SmallDisk::mount() else { return };
    disk.fill_with(taken);
    let path = disk.path().join("threads.db");
    let mut store = open(&path).await;
    let running = lease(&store, "running", "r").await;
    store.append(&[batch(&running, 1, 3)]).await.unwrap();
    let count = fill(&store, "a", &long()).await;
    assert!(count > 2, "{count}");
    // Another program takes the rest.
    let filler = disk.fill();
    // The log may have a beginning that is written again.
    fill(&store, "small", "").await;
    let end = TestEnd { state: Some(json!({ "a": "word ".repeat(100) })), ..end_at(NOW) };
    end.finish(&store, &running, 0).await.unwrap();
    assert!(store.check().await.unwrap_err().is_transient());
    assert!(
        run("new", "r").try_begin(&store, None, 0, None).await.is_err(),
        "only endings use the reserve"
    );
    delete(&store, "a0").await;
    // Deletions work after a shutdown without space.
    for thread in ["a1", "a2"] {
        drop(store);
        store = open(&path).await;
        assert!(exists(&store, thread).await);
        delete(&store, thread).await;
        assert!(!exists(&store, thread).await);
    }
    for number in 3..count {
        delete(&store, &format!("a{number}")).await;
    }
    store.sweep(&Retention::default(), NOW).await.unwrap();
    // The space of the deleted messages can be used again, although the other program keeps its
    // own.
    tokio::time::sleep(std::time::Duration::from_millis(1100)).await;
    store.check().await.unwrap();
    assert!(fill(&store, "b", &long()).await > 2);
    fs::remove_file(filler).unwrap();
    drop(store);
    assert_eq!(quick_check(&path), "ok");
}
