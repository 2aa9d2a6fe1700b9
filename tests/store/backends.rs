//! New, empty stores of every kind, and short ways to say what to do with one.

use std::sync::Arc;

use agui_server::{
    protocol::Message,
    store::{
        Append, Begin, Lease, Memory, Millis, NewRun, RunEnd, RunStatus, Sql, Store, StoreError, Thread, ThreadContent,
    },
};
use tempfile::TempDir;

use crate::{foreground::Foreground, postgres::Postgres};

pub(crate) type Shared = Arc<dyn Store>;

/// A store, and what it lives in.
pub(crate) struct Backend {
    store: Shared,
    _folder: Option<TempDir>,
}

impl Backend {
    pub(crate) fn store(&self) -> Shared {
        self.store.clone()
    }

    fn foreground(self) -> Self {
        Self { store: Arc::new(Foreground(self.store)), ..self }
    }
}

pub(crate) async fn memory() -> Option<Backend> {
    Some(Backend { store: Arc::new(Memory::new()), _folder: None })
}

pub(crate) async fn sqlite() -> Option<Backend> {
    let folder = tempfile::tempdir().unwrap();
    let store = Sql::sqlite(&folder.path().join("threads.db")).await.unwrap();
    Some(Backend { store: Arc::new(store), _folder: Some(folder) })
}

pub(crate) async fn postgres() -> Option<Backend> {
    let url = Postgres::shared()?.database("contract").await;
    Some(Backend { store: Arc::new(Sql::postgres(&url).await.unwrap()), _folder: None })
}

pub(crate) async fn sqlite_foreground() -> Option<Backend> {
    sqlite().await.map(Backend::foreground)
}

pub(crate) async fn postgres_foreground() -> Option<Backend> {
    postgres().await.map(Backend::foreground)
}

// --- Short ways to say it -------------------------------------------------------------------------

/// What time it is in these tests, and until when leases are taken.
pub(crate) const NOW: Millis = 1_000_000;
pub(crate) const UNTIL: Millis = NOW + 30_000;

pub(crate) fn new_run(thread: &str, run: &str) -> NewRun {
    NewRun {
        thread_id: thread.into(),
        run_id: run.into(),
        owner: None,
        agent: "echo".to_owned(),
        detached: true,
        holder: "here".to_owned(),
        now: NOW,
        until: UNTIL,
    }
}

pub(crate) fn at(now: Millis, run: NewRun) -> NewRun {
    NewRun { now, until: now + 30_000, ..run }
}

pub(crate) async fn begun(store: &Shared, run: NewRun) -> (Lease, Thread, bool) {
    match store.begin(&run).await.unwrap() {
        Begin::Begun { lease, thread, replaced } => (lease, thread, replaced),
        other => panic!("{other:?}"),
    }
}

/// Begins a run and answers its lease.
pub(crate) async fn lease(store: &Shared, thread: &str, run: &str) -> Lease {
    begun(store, new_run(thread, run)).await.0
}

pub(crate) fn ended_at(at: Millis) -> RunEnd {
    RunEnd { status: RunStatus::Finished, at, events: 0, usage: Vec::new(), failure: None }
}

pub(crate) async fn finish(store: &Shared, lease: &Lease, at: Millis) {
    store.finish(lease, None, None, &ended_at(at)).await.unwrap();
}

/// A thread with one ended run, which has a log of one event.
pub(crate) async fn ended_run(store: &Shared, thread: &str, run: &str, at: Millis) {
    let (lease, ..) = begun(store, self::at(at, new_run(thread, run))).await;
    let end = RunEnd { events: 1, ..ended_at(at) };
    store.finish(&lease, None, Some(&batch(&lease, 1, 1)), &end).await.unwrap();
}

/// The event with a number.
pub(crate) fn event(number: u64) -> String {
    format!(r#"{{"type":"CUSTOM","name":"number","value":{number}}}"#)
}

pub(crate) fn events(first: u64, count: u64) -> Vec<String> {
    (first..first + count).map(event).collect()
}

pub(crate) fn batch(lease: &Lease, first: u64, count: u64) -> Append {
    Append { lease: lease.clone(), first, events: events(first, count) }
}

pub(crate) fn said(text: &str) -> ThreadContent {
    ThreadContent { messages: vec![Message::user("m", text)], ..ThreadContent::default() }
}

/// The whole log of a run, however little of it a store answers at a time.
pub(crate) async fn log(store: &Shared, thread: &str, run: &str) -> Vec<String> {
    let mut log = Vec::new();
    loop {
        let after = log.len() as u64;
        let part = store.events(&thread.into(), &run.into(), after, usize::MAX).await.unwrap().unwrap();
        if part.events.is_empty() {
            return log;
        }
        log.extend(part.events);
    }
}

pub(crate) fn is_lost<T: std::fmt::Debug>(result: Result<T, StoreError>) -> bool {
    match result {
        Err(StoreError::LeaseLost) => true,
        Err(error) => panic!("{error:?}"),
        Ok(_) => false,
    }
}

/// A lease like this one, but of another thread.
pub(crate) fn elsewhere(lease: &Lease, thread: &str) -> Lease {
    Lease { thread_id: thread.into(), thread_number: lease.thread_number + 1, ..lease.clone() }
}
