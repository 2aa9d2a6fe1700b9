//! Short ways to write to a store and to read it, for tests. A failed step panics.
//!
//! The time is always [`NOW`], and leases last until [`UNTIL`], so that a test does not depend on the clock.

use std::sync::Arc;

use agui_protocol::{Interrupt, Message, ResumeEntry, ResumeStatus, RunId};
use serde_json::{Value, json};
use smart_default::SmartDefault;

use crate::{
    BeginOutcome, Begun, BranchWrite, EventBatch, Lease, MessageNode, MessageNumber, Millis,
    NewRun, QueueNumber, RunEnd, RunNumber, RunRecord, RunStatus, StateNumber, Store, StoreError,
    Thread, ThreadKey, ThreadNumber, ThreadPage, ThreadParts, ThreadSize, ThreadVersion,
    ThreadView,
};

pub type DynStore = Arc<dyn Store>;

pub const NOW: Millis = 1_000_000;
pub const UNTIL: Millis = NOW + 30_000;

/// A run to begin on the current version of a thread, with its messages after the head.
#[derive(Debug, Clone, SmartDefault)]
pub struct TestRun {
    pub key: ThreadKey,
    pub id: RunId,
    pub asked: Option<&'static str>,
    pub known: RunNumber,
    pub queued: Option<QueueNumber>,
    pub continues: bool,
    #[default("echo".to_owned())]
    pub agent: String,
    #[default = true]
    pub detached: bool,
    #[default("here".into())]
    pub holder: Arc<str>,
    #[default(NOW)]
    pub now: Millis,
    #[default(UNTIL)]
    pub until: Millis,
    /// The number of the message that the new ones follow; `None` is the head.
    pub base: Option<i64>,
    pub first_run: Option<RunNumber>,
    pub messages: Vec<Message>,
    pub updated: Vec<(i64, Message)>,
    pub title: Option<&'static str>,
    pub state: Option<Value>,
    pub interrupts: Vec<Interrupt>,
    pub answered: Vec<ResumeEntry>,
    pub request: Option<&'static str>,
    pub started: Option<&'static str>,
    #[default(ThreadSize { messages: u64::MAX, bytes: u64::MAX })]
    pub max: ThreadSize,
}

/// The owner of the threads of [`key`].
pub const OWNER: &str = ThreadKey::ANONYMOUS;

pub fn key(thread: &str) -> ThreadKey {
    ThreadKey { owner: ThreadKey::ANONYMOUS.into(), id: thread.into() }
}

pub fn run(thread: &str, id: &str) -> TestRun {
    TestRun { key: key(thread), id: id.into(), ..TestRun::default() }
}

impl TestRun {
    pub fn of(mut self, owner: &str) -> Self {
        self.key.owner = owner.into();
        self
    }

    pub fn at(self, now: Millis) -> Self {
        Self { now, until: now + 30_000, ..self }
    }

    pub fn by(self, holder: &str) -> Self {
        Self { holder: holder.into(), ..self }
    }

    pub fn with(self, messages: impl IntoIterator<Item = Message>) -> Self {
        Self { messages: messages.into_iter().collect(), ..self }
    }

    pub async fn begin(&self, store: &DynStore) -> BeginOutcome {
        let thread = view(store, &self.key).await.map(|view| view.thread);
        let known = thread.as_ref().map(ThreadVersion::of);
        let head = thread.as_ref().map_or(0, |thread| thread.head.0);
        let state = thread.and_then(|thread| thread.state).map(|(number, _)| number);
        self.try_begin(store, known, head, state).await.unwrap()
    }

    pub async fn try_begin(
        &self,
        store: &DynStore,
        known: Option<ThreadVersion>,
        head: i64,
        state_number: Option<StateNumber>,
    ) -> Result<BeginOutcome, StoreError> {
        let mut run = NewRun::new(&self.key, &self.id, &self.agent, &self.holder);
        (run.asked, run.known, run.continues) = (self.asked, self.known, self.continues);
        (run.detached, run.queued) = (self.detached, self.queued);
        run.now = self.now;
        run.lease_until = self.until;
        run.expected = known;
        run.branch.base = MessageNumber(self.base.unwrap_or(head));
        run.first_run = self.first_run;
        run.branch.new = self.messages.iter().map(|message| (message, None)).collect();
        run.branch.updated = self
            .updated
            .iter()
            .map(|(number, message)| (MessageNumber(*number), message))
            .collect();
        run.state = self.state.as_ref();
        run.state_number = state_number.filter(|_| self.state.is_none());
        run.interrupts = &self.interrupts;
        run.answered = self.answered.clone();
        run.request = self.request;
        run.started = self.started;
        run.max_size = self.max;
        run.title = self.title;
        store.begin(&run).await
    }

    pub async fn begun(&self, store: &DynStore) -> Lease {
        match self.begin(store).await {
            BeginOutcome::Begun(Begun { lease, .. }) => lease,
            other => panic!("{other:?}"),
        }
    }

    /// Begins and ends the run.
    pub async fn ended(&self, store: &DynStore, end: TestEnd) -> Lease {
        let lease = self.begun(store).await;
        let head = view(store, &self.key).await.unwrap().thread.head.0;
        assert!(end.finish(store, &lease, head).await.unwrap());
        lease
    }
}

/// The end of a run that makes messages of the assistant with these texts.
pub fn answer<const N: usize>(texts: [&str; N]) -> TestEnd {
    end_at(NOW).with(texts.map(assistant))
}

pub async fn lease(store: &DynStore, thread: &str, id: &str) -> Lease {
    run(thread, id).begun(store).await
}

#[derive(Default)]
pub struct TestEnd {
    pub end: RunEnd<'static>,
    pub messages: Vec<Message>,
    pub state: Option<Value>,
    pub interrupts: Vec<Interrupt>,
    pub last: Option<EventBatch>,
}

pub fn end_at(at: Millis) -> TestEnd {
    let mut end = RunEnd::new(RunStatus::Finished, MessageNumber::ROOT);
    (end.ended_at, end.delivered) = (at, true);
    TestEnd { end, ..TestEnd::default() }
}

impl TestEnd {
    pub fn with(self, messages: impl IntoIterator<Item = Message>) -> Self {
        Self { messages: messages.into_iter().collect(), ..self }
    }

    pub fn last(mut self, last: EventBatch) -> Self {
        self.end.events = last.first + last.events.len() as u64 - 1;
        Self { last: Some(last), ..self }
    }

    /// Ends the run, with its messages after the message `head`. Returns whether the end was new.
    pub async fn finish(
        &self,
        store: &DynStore,
        lease: &Lease,
        head: i64,
    ) -> Result<bool, StoreError> {
        let mut end: RunEnd<'_> = self.end.clone();
        end.branch = BranchWrite::default();
        end.branch.base = MessageNumber(head);
        end.branch.new = self.messages.iter().map(|message| (message, Some(lease.run))).collect();
        end.state = self.state.as_ref();
        end.interrupts = &self.interrupts;
        end.last_events = self.last.as_ref();
        store.finish(lease, &end).await.map(|finished| finished.is_some())
    }
}

pub async fn finish(store: &DynStore, lease: &Lease, at: Millis) {
    assert!(end_at(at).finish(store, lease, 0).await.unwrap());
}

/// Begins and ends a run whose log has one event.
pub async fn ended_run(store: &DynStore, run: TestRun) -> Lease {
    let lease = run.begun(store).await;
    end_at(run.now).last(batch(&lease, 1, 1)).finish(store, &lease, 0).await.unwrap();
    lease
}

/// Returns a value with changes: the arguments of a store are structs that can get further fields.
pub fn changed<T>(mut value: T, change: impl FnOnce(&mut T)) -> T {
    change(&mut value);
    value
}

pub fn all_parts() -> ThreadParts {
    let mut parts = ThreadParts::default();
    (parts.messages, parts.state, parts.runs) = (true, true, usize::MAX);
    parts
}

pub async fn view(store: &DynStore, key: &ThreadKey) -> Option<ThreadView> {
    store.thread(key, all_parts()).await.unwrap()
}

/// Lists the threads of an owner. Returns their ids, joined.
pub async fn listed(store: &DynStore, owner: &str, page: ThreadPage) -> String {
    names(&store.threads(owner, &page).await.unwrap())
}

pub fn names(threads: &[Thread]) -> String {
    threads.iter().map(|thread| &*thread.key.id).collect()
}

pub async fn thread(store: &DynStore, thread: &str) -> ThreadView {
    view(store, &key(thread)).await.unwrap()
}

pub async fn exists(store: &DynStore, thread: &str) -> bool {
    view(store, &key(thread)).await.is_some()
}

pub async fn record(store: &DynStore, thread: &str, id: &str) -> RunRecord {
    let number = self::thread(store, thread).await.thread.number;
    store.run(OWNER, number, &id.into()).await.unwrap().unwrap()
}

pub async fn delete(store: &DynStore, thread: &str) -> bool {
    match view(store, &key(thread)).await {
        Some(view) => store.delete(view.thread.number).await.unwrap(),
        None => false,
    }
}

pub fn ids<'a>(messages: impl IntoIterator<Item = &'a Message>) -> String {
    let ids: Vec<_> = messages.into_iter().map(|message| message.id().to_string()).collect();
    ids.join(" ")
}

pub fn branch(view: &ThreadView) -> String {
    ids(view.current_branch())
}

/// Returns the ids of all messages, in the order they were stored.
pub fn tree(nodes: &[MessageNode]) -> String {
    ids(nodes.iter().map(|node| &node.message))
}

pub fn user(text: &str) -> Message {
    Message::user(text, text)
}

pub fn assistant(text: &str) -> Message {
    serde_json::from_value(serde_json::json!({ "id": text, "role": "assistant", "content": text }))
        .unwrap()
}

pub fn event(number: u64) -> String {
    format!(r#"{{"type":"CUSTOM","name":"number","value":{number}}}"#)
}

pub fn events(first: u64, count: u64) -> Vec<String> {
    (first..first + count).map(event).collect()
}

/// Returns the times that [`batch`] gives its events.
pub fn times(first: u64, count: u64) -> Vec<u64> {
    (first..first + count).map(|number| 1000 * number).collect()
}

pub fn batch(lease: &Lease, first: u64, count: u64) -> EventBatch {
    EventBatch {
        lease: lease.clone(),
        first,
        events: events(first, count),
        times: times(first, count),
    }
}

pub async fn log(store: &DynStore, run: RunNumber) -> Vec<String> {
    let mut log = Vec::new();
    loop {
        let page = store.events(OWNER, run, log.len() as u64, usize::MAX).await.unwrap().unwrap();
        if page.events.is_empty() {
            return log;
        }
        log.extend(page.events);
    }
}

pub fn is_lost<T: std::fmt::Debug>(result: Result<T, StoreError>) -> bool {
    match result {
        Err(StoreError::LeaseLost) => true,
        Err(error) => panic!("{error:?}"),
        Ok(_) => false,
    }
}

/// Returns leases that differ from a valid one in thread, run and holder.
pub(super) fn wrong_leases(lease: &Lease) -> [Lease; 3] {
    [
        Lease { thread: ThreadNumber(lease.thread.0 + 1000), ..lease.clone() },
        Lease { run: RunNumber(lease.run.0 + 1000), ..lease.clone() },
        Lease { holder: "other".into(), ..lease.clone() },
    ]
}

/// Returns a reply that approves.
pub(super) fn approves(interrupt: &str) -> ResumeEntry {
    ResumeEntry {
        interrupt_id: interrupt.into(),
        status: ResumeStatus::Resolved,
        payload: Some(json!({ "approved": true })),
        metadata: None,
    }
}
