//! New, empty stores of every kind, and short ways to use one.

use std::sync::Arc;

use agui_server::{
    protocol::{Interrupt, InterruptId, Message, RunId},
    store::{
        BeginOutcome, BranchWrite, EventBatch, Lease, MemoryStore, MessageNode, Millis, NewRun, PostgresStore, RunEnd,
        RunRecord, RunStatus, SqliteStore, Store, StoreError, ThreadKey, ThreadParts, ThreadSize, ThreadVersion,
        ThreadView,
    },
};
use serde_json::Value;
use tempfile::TempDir;

use crate::postgres::Postgres;

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
}

pub(crate) async fn memory() -> Option<Backend> {
    Some(Backend { store: Arc::new(MemoryStore::new()), _folder: None })
}

pub(crate) async fn sqlite() -> Option<Backend> {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(&folder.path().join("threads.db")).await.unwrap();
    Some(Backend { store: Arc::new(store), _folder: Some(folder) })
}

pub(crate) async fn postgres() -> Option<Backend> {
    let url = Postgres::shared()?.database("contract").await;
    Some(Backend { store: Arc::new(PostgresStore::open(&url).await.unwrap()), _folder: None })
}

// --- Runs ------------------------------------------------------------------------------------------

/// The time in these tests, and until when leases are taken.
pub(crate) const NOW: Millis = 1_000_000;
pub(crate) const UNTIL: Millis = NOW + 30_000;

/// A run to begin on the thread as it is, with its messages after the head.
#[derive(Debug, Clone)]
pub(crate) struct TestRun {
    pub(crate) key: ThreadKey,
    pub(crate) id: RunId,
    pub(crate) agent: String,
    pub(crate) detached: bool,
    pub(crate) holder: Arc<str>,
    pub(crate) now: Millis,
    pub(crate) until: Millis,
    /// After this message, if not after the head.
    pub(crate) base: Option<i64>,
    pub(crate) messages: Vec<Message>,
    pub(crate) updated: Vec<(i64, Message)>,
    pub(crate) state: Option<Value>,
    pub(crate) interrupts: Vec<Interrupt>,
    pub(crate) answered: Vec<InterruptId>,
    pub(crate) max: ThreadSize,
}

pub(crate) fn key(thread: &str) -> ThreadKey {
    ThreadKey { owner: ThreadKey::ANONYMOUS.into(), id: thread.into() }
}

pub(crate) fn run(thread: &str, id: &str) -> TestRun {
    TestRun {
        key: key(thread),
        id: id.into(),
        agent: "echo".to_owned(),
        detached: true,
        holder: "here".into(),
        now: NOW,
        until: UNTIL,
        base: None,
        messages: Vec::new(),
        updated: Vec::new(),
        state: None,
        interrupts: Vec::new(),
        answered: Vec::new(),
        max: ThreadSize { messages: u64::MAX, bytes: u64::MAX },
    }
}

impl TestRun {
    pub(crate) fn of(mut self, owner: &str) -> Self {
        self.key.owner = owner.into();
        self
    }

    pub(crate) fn at(self, now: Millis) -> Self {
        Self { now, until: now + 30_000, ..self }
    }

    pub(crate) fn by(self, holder: &str) -> Self {
        Self { holder: holder.into(), ..self }
    }

    /// The client's messages.
    pub(crate) fn with(self, messages: impl IntoIterator<Item = Message>) -> Self {
        Self { messages: messages.into_iter().collect(), ..self }
    }

    pub(crate) async fn begin(&self, store: &Shared) -> BeginOutcome {
        let thread = view(store, &self.key).await.map(|view| view.thread);
        let known = thread.as_ref().map(|thread| ThreadVersion { number: thread.number, version: thread.version });
        let head = thread.as_ref().map_or(0, |thread| thread.head);
        let state = thread.and_then(|thread| thread.state).map(|(number, _)| number);
        self.try_begin(store, known, head, state).await.unwrap()
    }

    pub(crate) async fn try_begin(
        &self,
        store: &Shared,
        known: Option<ThreadVersion>,
        head: i64,
        state_number: Option<i64>,
    ) -> Result<BeginOutcome, StoreError> {
        let run = NewRun {
            key: &self.key,
            run_id: &self.id,
            agent: &self.agent,
            detached: self.detached,
            holder: &self.holder,
            now: self.now,
            lease_until: self.until,
            expected: known,
            branch: BranchWrite {
                base: self.base.unwrap_or(head),
                new: self.messages.iter().map(|message| (message, None)).collect(),
                updated: self.updated.iter().map(|(number, message)| (*number, message)).collect(),
            },
            state: self.state.as_ref(),
            state_number: state_number.filter(|_| self.state.is_none()),
            interrupts: &self.interrupts,
            answered: self.answered.iter().collect(),
            max_size: self.max,
        };
        store.begin(&run).await
    }

    /// Begins the run, which must succeed, and returns its lease.
    pub(crate) async fn begun(&self, store: &Shared) -> Lease {
        match self.begin(store).await {
            BeginOutcome::Begun { lease, .. } => lease,
            other => panic!("{other:?}"),
        }
    }
}

pub(crate) async fn lease(store: &Shared, thread: &str, id: &str) -> Lease {
    run(thread, id).begun(store).await
}

/// The end of a run, with its messages after the head.
pub(crate) struct TestEnd {
    pub(crate) end: RunEnd<'static>,
    pub(crate) messages: Vec<Message>,
    pub(crate) state: Option<Value>,
    pub(crate) interrupts: Vec<Interrupt>,
    pub(crate) last: Option<EventBatch>,
}

pub(crate) fn end_at(at: Millis) -> TestEnd {
    let end = RunEnd { ended_at: at, delivered: true, ..RunEnd::new(RunStatus::Finished, 0) };
    TestEnd { end, messages: Vec::new(), state: None, interrupts: Vec::new(), last: None }
}

impl TestEnd {
    /// The messages that the run made.
    pub(crate) fn with(self, messages: impl IntoIterator<Item = Message>) -> Self {
        Self { messages: messages.into_iter().collect(), ..self }
    }

    pub(crate) fn last(mut self, last: EventBatch) -> Self {
        self.end.events = last.first + last.events.len() as u64 - 1;
        Self { last: Some(last), ..self }
    }

    /// Ends the run. Returns whether the end was new.
    pub(crate) async fn finish(&self, store: &Shared, lease: &Lease, head: i64) -> Result<bool, StoreError> {
        let end = RunEnd {
            branch: BranchWrite {
                base: head,
                new: self.messages.iter().map(|message| (message, Some(lease.run))).collect(),
                updated: Vec::new(),
            },
            state: self.state.as_ref(),
            interrupts: &self.interrupts,
            last_events: self.last.as_ref(),
            ..self.end.clone()
        };
        store.finish(lease, &end).await.map(|finished| finished.is_some())
    }
}

pub(crate) async fn finish(store: &Shared, lease: &Lease, at: Millis) {
    assert!(end_at(at).finish(store, lease, 0).await.unwrap());
}

/// A thread with one ended run, which has a log of one event.
pub(crate) async fn ended_run(store: &Shared, run: TestRun) -> Lease {
    let lease = run.begun(store).await;
    end_at(run.now).last(batch(&lease, 1, 1)).finish(store, &lease, 0).await.unwrap();
    lease
}

// --- What is there ---------------------------------------------------------------------------------

pub(crate) const ALL: ThreadParts = ThreadParts { messages: true, runs: usize::MAX };

pub(crate) async fn view(store: &Shared, key: &ThreadKey) -> Option<ThreadView> {
    store.thread(key, ALL).await.unwrap()
}

/// A thread that exists.
pub(crate) async fn thread(store: &Shared, thread: &str) -> ThreadView {
    view(store, &key(thread)).await.unwrap()
}

pub(crate) async fn exists(store: &Shared, thread: &str) -> bool {
    view(store, &key(thread)).await.is_some()
}

/// A run that exists.
pub(crate) async fn record(store: &Shared, thread: &str, id: &str) -> RunRecord {
    let number = self::thread(store, thread).await.thread.number;
    store.run(number, &id.into()).await.unwrap().unwrap()
}

pub(crate) async fn delete(store: &Shared, thread: &str) -> bool {
    match view(store, &key(thread)).await {
        Some(view) => store.delete(view.thread.number).await.unwrap(),
        None => false,
    }
}

/// The ids of messages, in order.
pub(crate) fn ids<'a>(messages: impl IntoIterator<Item = &'a Message>) -> String {
    let ids: Vec<_> = messages.into_iter().map(|message| message.id().to_string()).collect();
    ids.join(" ")
}

/// The ids of the current branch.
pub(crate) fn branch(view: &ThreadView) -> String {
    ids(view.current_branch())
}

/// The ids of all branches, in the order they were stored.
pub(crate) fn tree(nodes: &[MessageNode]) -> String {
    ids(nodes.iter().map(|node| &node.message))
}

pub(crate) fn user(text: &str) -> Message {
    Message::user(text, text)
}

pub(crate) fn assistant(text: &str) -> Message {
    serde_json::from_value(serde_json::json!({ "id": text, "role": "assistant", "content": text })).unwrap()
}

// --- Logs ------------------------------------------------------------------------------------------

/// The event with a number.
pub(crate) fn event(number: u64) -> String {
    format!(r#"{{"type":"CUSTOM","name":"number","value":{number}}}"#)
}

pub(crate) fn events(first: u64, count: u64) -> Vec<String> {
    (first..first + count).map(event).collect()
}

pub(crate) fn batch(lease: &Lease, first: u64, count: u64) -> EventBatch {
    EventBatch { lease: lease.clone(), first, events: events(first, count) }
}

/// The whole log of a run, however little of it a store returns at a time.
pub(crate) async fn log(store: &Shared, run: i64) -> Vec<String> {
    let mut log = Vec::new();
    loop {
        let page = store.events(run, log.len() as u64, usize::MAX).await.unwrap().unwrap();
        if page.events.is_empty() {
            return log;
        }
        log.extend(page.events);
    }
}

pub(crate) fn is_lost<T: std::fmt::Debug>(result: Result<T, StoreError>) -> bool {
    match result {
        Err(StoreError::LeaseLost) => true,
        Err(error) => panic!("{error:?}"),
        Ok(_) => false,
    }
}

/// Leases that differ from a held one in one part each.
pub(crate) fn wrong_leases(held: &Lease) -> [Lease; 3] {
    [
        Lease { thread: held.thread + 1000, ..held.clone() },
        Lease { run: held.run + 1000, ..held.clone() },
        Lease { holder: "other".into(), ..held.clone() },
    ]
}
