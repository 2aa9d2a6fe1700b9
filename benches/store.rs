//! What the store costs on a file of SQLite: `cargo bench --bench store`
//!
//! The clock is the processor's, of all threads of the process, for the log of runs is written beside the runs
//! themselves and competes with them. Linux only: elsewhere there is no `/proc` to look it up in.

#![allow(clippy::unwrap_used, clippy::print_stdout, missing_docs)]

use std::{fs, path::Path, time::Instant};

use agui_server::{
    protocol::Message,
    store::{Append, Begin, Lease, NewRun, RunEnd, RunStatus, Sql, Store, ThreadContent},
};

/// As many runs write at the same time, each a batch at a time.
const RUNS: usize = 300;
const EVENTS: u64 = 4;
const ROUNDS: u64 = 400;

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    let folder = tempfile::tempdir_in(".").unwrap();
    let store = Sql::sqlite(&folder.path().join("bench.db")).await.unwrap();
    let names: Vec<_> = (0..RUNS).map(|_| uuid::Uuid::new_v4().to_string()).collect();

    let cost = Cost::begin();
    let mut leases = Vec::new();
    for name in &names {
        leases.push(begin(&store, name, "run-1").await);
    }
    cost.end("begin, on a new thread", RUNS as u64);

    let cost = Cost::begin();
    for round in 0..ROUNDS {
        let answers = store.append(&batches(&leases, round)).await.unwrap();
        assert!(answers.into_iter().all(|there| there));
        if round + 1 == ROUNDS {
            cost.end("append, a batch of 4 events of 120 bytes among 300", ROUNDS * RUNS as u64);
        }
    }
    let cost = Cost::begin();
    for round in 0..ROUNDS {
        batches(&leases, round);
    }
    cost.end("  of it, making the batch", ROUNDS * RUNS as u64);

    let cost = Cost::begin();
    for lease in &leases {
        store.append(&batches(std::slice::from_ref(lease), ROUNDS)).await.unwrap();
    }
    cost.end("append, a batch alone", RUNS as u64);

    let cost = Cost::begin();
    for lease in &leases {
        store.events(&lease.thread_id, &lease.run_id, ROUNDS * EVENTS, 65536).await.unwrap();
    }
    cost.end("events, at the end of the log", RUNS as u64);

    let cost = Cost::begin();
    let mut read = 0;
    for lease in &leases {
        let mut after = 0;
        while after < ROUNDS * EVENTS {
            let part = store.events(&lease.thread_id, &lease.run_id, after, 65536).await.unwrap().unwrap();
            after += part.events.len() as u64;
            read += part.events.len() as u64;
        }
    }
    cost.end("events, one of a whole log", read);

    let cost = Cost::begin();
    for _ in 0..100 {
        assert_eq!(store.renew("bench", 1).await.unwrap().len(), RUNS);
    }
    cost.end("renew, of 300 leases", 100);

    let content = ThreadContent { messages: vec![Message::user("m", "x".repeat(1000)); 10], ..Default::default() };
    let cost = Cost::begin();
    for lease in &leases {
        store.save(lease, &content).await.unwrap();
    }
    cost.end("save, of ten kilobytes", RUNS as u64);

    let end = RunEnd { status: RunStatus::Finished, at: 2, events: 0, usage: Vec::new(), failure: None };
    let cost = Cost::begin();
    for lease in &leases {
        let last = &batches(std::slice::from_ref(lease), ROUNDS + 1)[0];
        store.finish(lease, Some(&content), Some(last), &end).await.unwrap();
    }
    cost.end("finish, with ten kilobytes", RUNS as u64);

    let cost = Cost::begin();
    for name in &names {
        begin(&store, name, "run-2").await;
    }
    cost.end("begin, with ten kilobytes", RUNS as u64);

    let cost = Cost::begin();
    for lease in &leases {
        store.thread(&lease.thread_id).await.unwrap();
    }
    cost.end("thread, of ten kilobytes", RUNS as u64);
    store.close().await;
}

async fn begin(store: &Sql, thread: &str, run: &str) -> Lease {
    let run = NewRun {
        thread_id: thread.into(),
        run_id: run.into(),
        owner: None,
        agent: "bench".to_owned(),
        detached: true,
        holder: "bench".to_owned(),
        now: 1,
        until: 2,
    };
    match store.begin(&run).await.unwrap() {
        Begin::Begun { lease, .. } => lease,
        other => panic!("{other:?}"),
    }
}

fn batches(leases: &[Lease], round: u64) -> Vec<Append> {
    let event = |number: u64| {
        let text = "a few words of what a model says, about as many as come at a time, again and";
        format!(r#"{{"type":"TEXT_MESSAGE_CONTENT","messageId":"{number:08}","delta":"{text}"}}"#)
    };
    let first = 1 + round * EVENTS;
    let batch =
        |lease: &Lease| Append { lease: lease.clone(), first, events: (first..first + EVENTS).map(event).collect() };
    leases.iter().map(batch).collect()
}

/// What something costs: time on the processor and by the clock.
struct Cost {
    ticks: u64,
    began: Instant,
}

impl Cost {
    fn begin() -> Self {
        Self { ticks: ticks(), began: Instant::now() }
    }

    #[allow(clippy::cast_precision_loss)]
    fn end(&self, what: &str, times: u64) {
        // The kernel counts in hundredths of a second.
        let processor = (ticks() - self.ticks) as f64 * 10_000.0 / times as f64;
        let clock = self.began.elapsed().as_micros() as f64 / times as f64;
        println!("{what:52} {processor:8.1} µs of processor {clock:8.1} µs in all");
    }
}

fn ticks() -> u64 {
    let stat = fs::read_to_string(Path::new("/proc/self/stat")).unwrap();
    let fields: Vec<_> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
}
