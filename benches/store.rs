//! The cost of a run in a store, of pages and of searches: `cargo bench --bench store [-- postgres://…]`
//!
//! Without an argument the store is a new SQLite file. Reports the CPU time of this process (all threads; Linux only)
//! and the elapsed time, both per run.

#![allow(clippy::unwrap_used, clippy::print_stdout, missing_docs)]

use std::{fs, sync::Arc, time::Instant};

use agui_server::{
    protocol::Message,
    store::{
        BeginOutcome, Begun, CopiedMessage, CopiedRun, EventBatch, Lease, MessageNumber,
        MessageQuery, NewRun, PostgresStore, RunEnd, RunNumber, RunRecord, RunStatus, SqliteStore,
        Store, ThreadContent, ThreadKey, ThreadNumber, ThreadPage, ThreadParts, ThreadVersion,
    },
};
use agui_store::model::now;

#[cfg(feature = "jemalloc")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

const RUNS: usize = 3200;
const CONCURRENT_RUNS: usize = 32;
/// Lengths of the threads of `long_thread`, in messages.
const THREAD_LENGTHS: [usize; 2] = [50, 5000];
const EVENTS_PER_BATCH: u64 = 4;

#[tokio::main(flavor = "multi_thread", worker_threads = 1)]
async fn main() {
    let folder = tempfile::tempdir_in(".").unwrap();
    let url = std::env::args().find(|argument| argument.starts_with("postgres"));
    let store: Arc<dyn Store> = match url {
        Some(url) => Arc::new(PostgresStore::open(&url).await.unwrap()),
        None => Arc::new(SqliteStore::open(&folder.path().join("bench.db")).await.unwrap()),
    };
    new_threads(&store, 1).await;
    new_threads(&store, CONCURRENT_RUNS).await;
    for length in THREAD_LENGTHS {
        long_thread(&store, length).await;
    }
    logs(&store).await;
    pages(&store).await;
    searches(&store).await;
}

/// Begins and finishes runs, each on a new thread.
async fn new_threads(store: &Arc<dyn Store>, concurrent: usize) {
    let cost = Cost::start();
    let mut tasks = Vec::new();
    for _ in 0..concurrent {
        let store = store.clone();
        tasks.push(tokio::spawn(async move {
            for _ in 0..RUNS / concurrent {
                let (key, asked) = (new_key(), Message::user("question", "Say something, please"));
                let (lease, asked) =
                    begin(&*store, &key, None, MessageNumber::ROOT, &[asked]).await;
                finish(&*store, &lease, asked).await;
            }
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
    cost.report(&format!("begin and finish on a new thread, {concurrent} at once"), RUNS);
}

/// Begins and finishes runs on one thread, which begins with `length` messages. Each run adds two.
async fn long_thread(store: &Arc<dyn Store>, length: usize) {
    let key = new_key();
    let messages: Vec<_> =
        (0..length).map(|n| Message::user(format!("m{n}"), "x".repeat(200))).collect();
    let (lease, last) = begin(&**store, &key, None, MessageNumber::ROOT, &messages).await;
    finish(&**store, &lease, last).await;
    let thread = store.thread(&key, ThreadParts::default()).await.unwrap().unwrap().thread;
    let (mut known, mut head) = (ThreadVersion::of(&thread), thread.head);
    let runs = RUNS / 10;
    let cost = Cost::start();
    for run in 0..runs {
        let asked = Message::user(format!("q{run}"), "Say something, please");
        let (lease, asked) = begin(&**store, &key, Some(known), head, &[asked]).await;
        head = finish(&**store, &lease, asked).await;
        known.version += 2;
    }
    cost.report(&format!("begin and finish on a thread of {length} messages"), runs);
}

/// Appends to the logs of 300 runs: each write has a batch of every run.
async fn logs(store: &Arc<dyn Store>) {
    let mut leases = Vec::new();
    for _ in 0..300 {
        leases.push(begin(&**store, &new_key(), None, MessageNumber::ROOT, &[]).await.0);
    }
    let (cost, rounds) = (Cost::start(), 100);
    for round in 0..rounds {
        let first = 1 + round * EVENTS_PER_BATCH;
        let text = "a few words of a model, about as many as come at a time, again and";
        let event = |n| {
            format!(r#"{{"type":"TEXT_MESSAGE_CONTENT","messageId":"{n:08}","delta":"{text}"}}"#)
        };
        let events = || (first..first + EVENTS_PER_BATCH).map(event).collect();
        let times = || (first..first + EVENTS_PER_BATCH).collect();
        let batch = |lease: &Lease| EventBatch {
            lease: lease.clone(),
            first,
            events: events(),
            times: times(),
        };
        let batches: Vec<_> = leases.iter().map(batch).collect();
        assert!(store.append(&batches).await.unwrap().into_iter().all(|is_written| is_written));
    }
    cost.report(
        "append a batch of 4 events among 300",
        leases.len() * usize::try_from(rounds).unwrap(),
    );
}

fn new_key() -> ThreadKey {
    ThreadKey { owner: ThreadKey::ANONYMOUS.into(), id: uuid::Uuid::new_v4().to_string().into() }
}

/// Begins a run. Returns its lease and the number of its last message.
async fn begin(
    store: &dyn Store,
    key: &ThreadKey,
    known: Option<ThreadVersion>,
    base: MessageNumber,
    messages: &[Message],
) -> (Lease, MessageNumber) {
    let (run_id, holder) = (uuid::Uuid::new_v4().to_string().into(), "bench".into());
    let mut run = NewRun::new(key, &run_id, "bench", &holder);
    (run.lease_until, run.expected) = (now() + 30_000, known);
    (run.branch.base, run.branch.new) =
        (base, messages.iter().map(|message| (message, None)).collect());
    match store.begin(&run).await.unwrap() {
        BeginOutcome::Begun(Begun { lease, last_message, .. }) => (lease, last_message),
        other => panic!("{other:?}"),
    }
}

/// Ends a run with an answer. Returns the number of the answer.
async fn finish(store: &dyn Store, lease: &Lease, head: MessageNumber) -> MessageNumber {
    let answer = Message::user(format!("a{}", lease.run), "token ".repeat(50));
    let mut end = RunEnd::new(RunStatus::Finished, head);
    end.delivered = true;
    end.branch.new = vec![(&answer, Some(lease.run))];
    store.finish(lease, &end).await.unwrap().unwrap().last_message
}

/// Reads a page of 50 messages of a thread of 20,000, from its end and from its middle.
async fn pages(store: &Arc<dyn Store>) {
    const LENGTH: i64 = 20_000;
    let key = new_key();
    let messages: Vec<_> =
        (0..LENGTH).map(|n| Message::user(format!("m{n}"), "x".repeat(500))).collect();
    let (lease, last) = begin(&**store, &key, None, MessageNumber::ROOT, &messages).await;
    finish(&**store, &lease, last).await;
    let thread = store.thread(&key, ThreadParts::default()).await.unwrap().unwrap().thread;
    for newest in [LENGTH, LENGTH / 2] {
        let (cost, times) = (Cost::start(), 100);
        for _ in 0..times {
            let query = MessageQuery::new(MessageNumber(newest), 50);
            assert_eq!(store.messages(&thread, &query).await.unwrap().nodes.len(), 50);
        }
        cost.report(&format!("page of 50 messages before message {newest}"), times);
    }
}

/// Searches 100,000 threads of four messages each.
async fn searches(store: &Arc<dyn Store>) {
    const THREADS: usize = 100_000;
    let mut word = Words(1);
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..THREADS {
        let texts = [12, 60, 10, 60]
            .map(|length| (0..length).map(|_| word.next()).collect::<Vec<_>>().join(" "));
        let store = store.clone();
        tasks.spawn(async move {
            let key = ThreadKey { owner: "key:ann".into(), id: number.to_string().into() };
            let messages = texts.into_iter().zip(0..).map(|(text, parent)| CopiedMessage {
                parent: MessageNumber(parent),
                run: None,
                message: Message::user(format!("m{parent}"), text),
                feedback: None,
            });
            assert!(store.insert(&key, &content(messages.collect())).await.unwrap());
        });
        if tasks.len() >= 500 {
            tasks.join_next().await.unwrap().unwrap();
        }
    }
    tasks.join_all().await;
    let (rare, common) = (Words::word(19_900), Words::word(3));
    for (what, query) in [
        ("first", "nothing"),
        ("no match", "nothing"),
        ("rare word", rare.as_str()),
        ("common word", common.as_str()),
        ("beginning of a word", &common[..3]),
        ("two words", &format!("{common} {rare}")),
        ("Chinese word", "天气"),
    ] {
        let (cost, times) = (Cost::start(), if what == "first" { 1 } else { 10 });
        let mut found = 0;
        for _ in 0..times {
            let mut page = ThreadPage::first(50);
            page.query = Some(query.to_owned());
            found = store.threads("key:ann", &page).await.unwrap().len();
        }
        cost.report(&format!("search 100,000 threads, {what}: {found} found"), times);
    }
}

/// Words with frequencies as in a language: the n-th word is about n times rarer than the first.
struct Words(u64);

impl Words {
    const COUNT: f64 = 20_000.0;

    #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    fn next(&mut self) -> String {
        // xorshift
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        Self::word(Self::COUNT.powf((self.0 % 1_000_000) as f64 / 1e6) as usize)
    }

    fn word(rank: usize) -> String {
        if rank % 50 == 7 {
            return "今天的天气".chars().cycle().skip(rank % 5).take(4).collect();
        }
        let letter = |n: usize| char::from(b'a' + u8::try_from(n % 26).unwrap());
        [rank * 7, rank / 3, rank, rank / 26, rank / 676].map(letter).iter().collect()
    }
}

fn content(messages: Vec<CopiedMessage>) -> ThreadContent {
    let mut record = RunRecord::new(
        RunNumber::default(),
        ThreadNumber::default(),
        "r".into(),
        "bench".to_owned(),
    );
    (record.status, record.delivered, record.ended_at) = (RunStatus::Finished, true, Some(0));
    let mut content = ThreadContent::default();
    (content.agent, content.title) = ("bench".to_owned(), Some("A title".to_owned()));
    content.head = MessageNumber(messages.len() as i64);
    content.runs = vec![CopiedRun {
        record,
        head: content.head,
        state: None,
        interrupts: vec![],
        answered: vec![],
    }];
    content.messages = messages;
    content
}

struct Cost {
    cpu: f64,
    started: Instant,
}

impl Cost {
    fn start() -> Self {
        Self { cpu: cpu_micros(), started: Instant::now() }
    }

    #[allow(clippy::cast_precision_loss)]
    fn report(&self, what: &str, times: usize) {
        let cpu = (cpu_micros() - self.cpu) / times as f64;
        let elapsed = self.started.elapsed().as_micros() as f64 / times as f64;
        println!("{what:52} {cpu:8.1} µs of CPU {elapsed:8.1} µs elapsed");
    }
}

/// Returns the CPU time of all live threads of this process, in microseconds.
#[allow(clippy::cast_precision_loss)]
fn cpu_micros() -> f64 {
    let of = |task: fs::DirEntry| {
        let stat = fs::read_to_string(task.path().join("schedstat")).unwrap();
        stat.split(' ').next().unwrap().parse::<u64>().unwrap()
    };
    fs::read_dir("/proc/self/task").unwrap().map(|task| of(task.unwrap())).sum::<u64>() as f64
        / 1000.0
}
