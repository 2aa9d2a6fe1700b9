//! Two owners of one store: ann cannot make bob wait for a second.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use agui_server::{
    protocol::Message,
    store::{
        CopiedMessage, CopiedRun, EndedRun, MessageNumber, PostgresStore, RunNumber, RunRecord,
        SqliteStore, ThreadContent, ThreadKey, ThreadNumber, ThreadPage, ThreadParts,
    },
};
use futures::FutureExt as _;
use sqlx::{Connection as _, PgConnection};
use tokio::{
    sync::{Barrier, Mutex},
    task::JoinSet,
    time::timeout,
};

use crate::{
    store::{
        file_promises::{delete_file, put_file},
        steps::{DynStore, NOW, all_parts, assistant, end_at, run},
    },
    support::postgres::Postgres,
};

const ANN: &str = "key:ann";
const BOB: &str = "key:bob";
/// The longest time that one owner may wait because of another.
const MAX_WAIT: Duration = Duration::from_secs(1);

/// Runs a test on a SQLite file and on Postgres. These tests measure waits, so they run one after another.
async fn on_each_store(test: impl AsyncFn(&str, &DynStore)) {
    static TURN: Mutex<()> = Mutex::const_new(());
    let _turn = TURN.lock().await;
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
        content.messages.push(CopiedMessage {
            parent: MessageNumber(number),
            run: None,
            message,
            feedback: None,
        });
    }
    content.head = MessageNumber(content.messages.len() as i64);
    let mut record = RunRecord::new(
        RunNumber::default(),
        ThreadNumber::default(),
        "r".into(),
        "echo".to_owned(),
    );
    record.ended_at = Some(1);
    let (head, answered) = (content.head, Vec::new());
    content.runs.push(CopiedRun { record, head, state: None, interrupts: Vec::new(), answered });
    content
}

async fn insert(
    store: &DynStore,
    owner: &str,
    thread: &str,
    texts: impl IntoIterator<Item = String>,
) {
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
            let has_ended = (&mut first).now_or_never().is_some();
            begun.wait().await;
            if !has_ended {
                first.await;
            }
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
        insert(store, ANN, "large", (0..60).map(|_| "x".repeat(1 << 19))).await;
        insert(store, BOB, "small", ["hello".to_owned()]).await;
        let read = async || {
            assert!(
                store.thread(&key(BOB, "small"), ThreadParts::default()).await.unwrap().is_some()
            );
            assert!(store.thread(&key(BOB, "small"), all_parts()).await.unwrap().is_some());
        };
        let alone = slowest(20, read).await;
        let busy = repeat(20, store, |store| async move {
            assert_eq!(
                store.thread(&key(ANN, "large"), all_parts()).await.unwrap().unwrap().nodes.len(),
                60
            );
        });
        let mut busy = busy.await;
        let beside = slowest(20, read).await;
        busy.shutdown().await;
        check(&format!("{name}: a read of a small thread"), alone, beside);
    })
    .await;
}

/// A text of 8 KiB with many different characters of a script without spaces.
fn ideographs(seed: u32) -> String {
    let numbers = std::iter::successors(Some(seed), |n| {
        Some(n.wrapping_mul(1_664_525).wrapping_add(1_013_904_223))
    });
    numbers.map(|n| char::from_u32(0x4e00 + (n >> 12) % 20_000).unwrap()).take(2700).collect()
}

async fn found(store: &DynStore, owner: &str, query: &str) -> usize {
    let mut page = ThreadPage::first(20);
    page.query = Some(query.to_owned());
    store.threads(owner, &page).await.unwrap().len()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn searches_keep_no_other_owner_waiting() {
    on_each_store(async |name, store| {
        for thread in ["a", "b"] {
            insert(store, ANN, thread, (0..500).map(|n| format!("abc{n} ").repeat(900))).await;
        }
        insert(store, BOB, "small", ["abc hello".to_owned()]).await;
        assert_eq!((found(store, ANN, "abc").await, found(store, BOB, "abc hel").await), (2, 1));
        let search = async || assert_eq!(found(store, BOB, "abc hel").await, 1);
        let alone = slowest(20, search).await;
        let mut busy = repeat(16, store, |store| async move {
            found(&store, ANN, &"abc ".repeat(50)).await;
        })
        .await;
        let beside = slowest(20, search).await;
        busy.shutdown().await;
        check(&format!("{name}: a search"), alone, beside);
    })
    .await;
}

/// Bob's requests: a run, a search, a deletion.
async fn converse(store: &DynStore, number: &AtomicUsize) {
    let thread = number.fetch_add(1, Ordering::Relaxed).to_string();
    let lease = run(&thread, "r").of(BOB).with([Message::user("q", "hello")]).begun(store).await;
    end_at(NOW).with([assistant("hi")]).finish(store, &lease, 1).await.unwrap();
    assert_eq!(found(store, BOB, "hel").await, 1);
    assert!(store.delete(lease.thread).await.unwrap());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_large_import_is_indexed_and_deleted_beside_the_runs_of_another_owner() {
    on_each_store(async |name, store| {
        let number = AtomicUsize::new(0);
        let alone = slowest(10, async || converse(store, &number).await).await;
        for thread in 0..2 {
            insert(
                store,
                ANN,
                &thread.to_string(),
                (0..400).map(|n| ideographs(1000 * thread + n)),
            )
            .await;
        }
        let search = tokio::spawn({
            let store = store.clone();
            async move { found(&store, ANN, "天地").await }
        });
        let indexing = slowest(10, async || converse(store, &number).await).await;
        search.await.unwrap();
        let large = store
            .thread(&key(ANN, "1"), ThreadParts::default())
            .await
            .unwrap()
            .unwrap()
            .thread
            .number;
        let delete = tokio::spawn({
            let store = store.clone();
            async move { store.delete(large).await.unwrap() }
        });
        let deleting = slowest(10, async || converse(store, &number).await).await;
        assert!(delete.await.unwrap());
        check(&format!("{name}: a run, a search and a deletion beside indexing"), alone, indexing);
        check(&format!("{name}: a run, a search and a deletion beside deleting"), alone, deleting);
    })
    .await;
}

/// 4.5 MB of Chinese have 1.5 million different words, more than Postgres indexes before a statement's timeout.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_import_of_many_different_words_is_found_to_its_last_message() {
    on_each_store(async |name, store| {
        let number = AtomicUsize::new(0);
        let alone = slowest(10, async || converse(store, &number).await).await;
        let texts = (0..3000).map(|n| ideographs(7 * n).chars().take(500).collect::<String>());
        let last = texts.clone().next_back().unwrap();
        let import = tokio::spawn({
            let store = store.clone();
            async move { insert(&store, ANN, "many", texts).await }
        });
        let mut beside = Duration::ZERO;
        while !import.is_finished() {
            beside = beside.max(slowest(1, async || converse(store, &number).await).await);
        }
        import.await.unwrap();
        assert_eq!(found(store, ANN, &last.chars().take(10).collect::<String>()).await, 1);
        check(&format!("{name}: a run, a search and a deletion beside an import"), alone, beside);
        let sent = (0..3000).map(|n| {
            Message::user(format!("s{n}"), ideographs(7 * n).chars().take(500).collect::<String>())
        });
        run("sent", "r").of(ANN).with(sent).begun(store).await;
        assert_eq!(found(store, ANN, &ideographs(7).chars().take(10).collect::<String>()).await, 2);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_end_of_a_long_branch_is_found_with_one_statement() {
    on_each_store(async |name, store| {
        let mut long = content((0..20_000).map(|n| n.to_string()));
        let run = long.runs.remove(0);
        for number in 0..20_000 {
            let mut other = run.clone();
            (other.record.id, other.head) = (number.to_string().into(), MessageNumber(1));
            long.runs.push(other);
        }
        assert!(store.insert(&key(ANN, "long"), &long).await.unwrap());
        let number = store
            .thread(&key(ANN, "long"), ThreadParts::default())
            .await
            .unwrap()
            .unwrap()
            .thread
            .number;
        let time = slowest(3, async || {
            let left = store
                .end_state(ANN, number, EndedRun::Branch(MessageNumber(20_000)))
                .await
                .unwrap()
                .unwrap();
            assert_eq!((&*left.run_id, left.head.0), ("19999", 1));
        });
        check(
            &format!("{name}: the end of a branch of 20,000 messages"),
            Duration::ZERO,
            time.await,
        );
    })
    .await;
}

/// Postgres ends the statement of a read that was dropped at once, and the next read gets its place.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_read_whose_caller_drops_it_is_cancelled_in_postgres() {
    let Some(server) = Postgres::shared() else { return };
    let url = server.database("cancelled").await;
    let store = Arc::new(PostgresStore::open(&url).await.unwrap()) as DynStore;
    insert(&store, ANN, "a", ["hello".to_owned()]).await;
    let mut other = PgConnection::connect(&url).await.unwrap();
    sqlx::raw_sql("BEGIN; LOCK TABLE agui_messages").execute(&mut other).await.unwrap();
    let waiting = "SELECT COUNT(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()";
    let key = key(ANN, "a");
    let mut read = Box::pin(store.thread(&key, all_parts()));
    let count = async |other: &mut PgConnection| {
        sqlx::query_scalar::<_, i64>(waiting).fetch_one(other).await.unwrap()
    };
    while count(&mut other).await == 0 {
        assert!(timeout(Duration::from_millis(10), &mut read).await.is_err());
    }
    drop(read);
    let begin = Instant::now();
    while count(&mut other).await > 0 {
        assert!(begin.elapsed() < Duration::from_secs(2), "it still waits for the lock");
    }
    sqlx::raw_sql("COMMIT").execute(&mut other).await.unwrap();
    assert_eq!(store.thread(&key, all_parts()).await.unwrap().unwrap().nodes.len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn runs_go_on_beside_large_uploads_and_their_deletion() {
    on_each_store(async |name, store| {
        let number = AtomicUsize::new(0);
        let begin_and_end = async || {
            let thread = number.fetch_add(1, Ordering::Relaxed).to_string();
            let lease =
                run(&thread, "r").of(BOB).with([Message::user("q", "hello")]).begun(store).await;
            end_at(NOW).with([assistant("hi")]).finish(store, &lease, 1).await.unwrap();
        };
        let alone = slowest(30, begin_and_end).await;
        let mut uploads = JoinSet::new();
        for n in 0..4_u8 {
            let store = store.clone();
            uploads.spawn(async move { put_file(&store, ANN, vec![n; 20 << 20]).await });
        }
        let mut beside = Duration::ZERO;
        let mut ids = Vec::new();
        while ids.len() < 4 {
            beside = beside.max(slowest(1, begin_and_end).await);
            ids.extend(uploads.try_join_next().map(Result::unwrap));
        }
        check(&format!("{name}: a run beside four uploads of 20 MiB"), alone, beside);
        for id in ids {
            let store = store.clone();
            uploads.spawn(async move {
                delete_file(&store, ANN, &id).await;
                id
            });
        }
        let mut deleting = Duration::ZERO;
        while !uploads.is_empty() {
            deleting = deleting.max(slowest(1, begin_and_end).await);
            drop(uploads.try_join_next().map(Result::unwrap));
        }
        check(&format!("{name}: a run beside their deletion"), alone, deleting);
    })
    .await;
}
