//! Two owners of one store: whatever ann does, bob waits for less than a second.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use agui_server::{
    protocol::Message,
    store::{CopiedMessage, CopiedRun, PostgresStore, RunRecord, SqliteStore, ThreadContent, ThreadKey, ThreadParts},
};
use futures::FutureExt as _;
use tokio::{sync::Barrier, task::JoinSet};

use crate::{
    postgres::Postgres,
    steps::{ALL, DynStore},
};

const ANN: &str = "key:ann";
const BOB: &str = "key:bob";
/// The longest time that one owner may wait because of another.
const MAX_WAIT: Duration = Duration::from_secs(1);

/// Runs a test on a SQLite file and on Postgres.
async fn on_each_store(test: impl AsyncFn(&str, &DynStore)) {
    let folder = tempfile::tempdir().unwrap();
    let sqlite = SqliteStore::open(&folder.path().join("threads.db")).await.unwrap();
    test("sqlite", &(Arc::new(sqlite) as DynStore)).await;
    if let Some(server) = Postgres::shared() {
        let postgres = PostgresStore::open(&server.database("neighbours").await).await.unwrap();
        test("postgres", &(Arc::new(postgres) as DynStore)).await;
    }
}

fn key(owner: &str, thread: &str) -> ThreadKey {
    ThreadKey { owner: owner.into(), id: thread.into() }
}

/// A thread with these texts of its user.
fn content(texts: impl IntoIterator<Item = String>) -> ThreadContent {
    let mut content = ThreadContent::default();
    for (text, number) in texts.into_iter().zip(0..) {
        let message = Message::user(format!("m{number}"), text);
        content.messages.push(CopiedMessage { parent: number, run: None, message, feedback: None });
    }
    content.head = content.messages.len() as i64;
    let mut record = RunRecord::new(0, 0, "r".into(), "echo".to_owned());
    record.ended_at = Some(1);
    let (head, answered) = (content.head, Vec::new());
    content.runs.push(CopiedRun { record, head, state: None, interrupts: Vec::new(), answered });
    content
}

async fn insert(store: &DynStore, owner: &str, thread: &str, texts: impl IntoIterator<Item = String>) {
    assert!(store.insert(&key(owner, thread), &content(texts)).await.unwrap());
}

/// Returns the time of the slowest of several calls.
async fn slowest(times: usize, call: impl AsyncFn()) -> Duration {
    let mut slowest = Duration::ZERO;
    for _ in 0..times {
        let begin = Instant::now();
        call().await;
        slowest = slowest.max(begin.elapsed());
    }
    slowest
}

/// Repeats a call in this many tasks, until the result is dropped. Returns when all have begun.
async fn repeat<F>(tasks: usize, store: &DynStore, call: fn(DynStore) -> F) -> JoinSet<()>
where
    F: Future<Output = ()> + Send + 'static,
{
    let (mut running, begun) = (JoinSet::new(), Arc::new(Barrier::new(tasks + 1)));
    for _ in 0..tasks {
        let (store, begun) = (store.clone(), begun.clone());
        running.spawn(async move {
            let mut first = Box::pin(call(store.clone()));
            assert!((&mut first).now_or_never().is_none());
            begun.wait().await;
            first.await;
            loop {
                call(store.clone()).await;
            }
        });
    }
    begun.wait().await;
    running
}

/// Checks what bob does alone and beside ann.
fn check(what: &str, alone: Duration, beside: Duration) {
    println!("{what}: {alone:?} alone, {beside:?} beside another owner");
    assert!(beside < MAX_WAIT, "{what}: {alone:?} alone, {beside:?} beside another owner");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reads_of_a_large_thread_keep_no_other_owner_waiting() {
    on_each_store(async |name, store| {
        insert(store, ANN, "large", (0..60).map(|_| "x".repeat(1 << 20))).await;
        insert(store, BOB, "small", ["hello".to_owned()]).await;
        let read = async || {
            assert!(store.thread(&key(BOB, "small"), ThreadParts::default()).await.unwrap().is_some());
            assert!(store.thread(&key(BOB, "small"), ALL).await.unwrap().is_some());
        };
        let alone = slowest(20, read).await;
        let busy = repeat(20, store, |store| async move {
            assert_eq!(store.thread(&key(ANN, "large"), ALL).await.unwrap().unwrap().nodes.len(), 60);
        });
        let mut busy = busy.await;
        let beside = slowest(20, read).await;
        busy.shutdown().await;
        check(&format!("{name}: a read of a small thread"), alone, beside);
    })
    .await;
}
