//! The store in Postgres, which several processes can share.
//!
//! A run takes two statements, one for its begin and one for its end, each in a transaction of its own (`sql`).
//! Processes notify each other after commits ([`notify`], [`listen`]). Every wait has a timeout. The pool reconnects
//! when the server is back.
//!
//! The tables are in `schema.sql`. To change them, raise `SCHEMA_VERSION` in `open`.

mod begin;
mod content;
mod error;
mod events;
mod finish;
mod leases;
mod list;
mod listen;
mod messages;
mod notify;
mod open;
mod pool;
mod reader;
mod remove;
mod update;
mod words;

use std::{ops::Deref, sync::Arc};

use async_trait::async_trait;
use tokio::task::AbortHandle;

use self::{notify::Notifier, pool::Pool};
use super::{
    BeginOutcome, CancelRequest, EndState, EndedRun, EventBatch, EventPage, Feedback, FinishedRun, HeldLease, Lease,
    LostRun, MessagePage, MessageQuery, Millis, NewRun, NewThread, OpenError, Retention, RunEnd, RunRecord, RunStart,
    SharedStore, Signals, Store, StoreError, SweepResult, ThreadContent, ThreadKey, ThreadPage, ThreadParts,
    ThreadSummary, ThreadUpdate, ThreadVersion, ThreadView, Topic,
};
use crate::protocol::{MessageId, RunId, ThreadId};

/// Keeps threads in a Postgres database. Creates its tables, whose names start with `agui_`, if they are missing.
#[derive(Debug)]
pub struct PostgresStore {
    db: Database,
    signals: Signals,
    _tasks: [AbortOnDrop; 2],
}

#[derive(Debug, Clone)]
struct Database {
    pool: Pool,
    notifier: Arc<Notifier>,
}

#[derive(Debug)]
struct AbortOnDrop(AbortHandle);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Deref for Database {
    type Target = Pool;

    fn deref(&self) -> &Pool {
        &self.pool
    }
}

impl PostgresStore {
    /// Connects to the database of a URL such as `postgres://user:password@host:5432/database`.
    ///
    /// # Errors
    /// An [`OpenError`] if the URL is invalid, the server does not answer within 5 s or refuses, or the tables are of another
    /// version or cannot be created.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub async fn open(url: &str) -> Result<Self, OpenError> {
        let (pool, signals) = (open::open(url).await?, Signals::default());
        let notifier = Arc::new(Notifier::new());
        let notifying = tokio::spawn(notifier.clone().run(pool.clone()));
        let listening = tokio::spawn(listen::listen(pool.clone(), notifier.clone(), signals.clone()));
        let tasks = [notifying, listening].map(|task| AbortOnDrop(task.abort_handle()));
        Ok(Self { db: Database { pool, notifier }, signals, _tasks: tasks })
    }
}

#[async_trait]
impl Store for PostgresStore {
    async fn begin(&self, run: &NewRun<'_>) -> Result<BeginOutcome, StoreError> {
        self.db.begin(run).await
    }

    async fn append(&self, batches: &[EventBatch]) -> Result<Vec<bool>, StoreError> {
        let appended = self.db.append(batches).await?;
        self.db.notifier.notify(batches.iter().map(|batch| Topic::Run(batch.lease.run)));
        Ok(appended)
    }

    async fn finish(&self, lease: &Lease, end: &RunEnd<'_>) -> Result<Option<FinishedRun>, StoreError> {
        let finished = self.db.finish(lease, end).await?;
        self.db.notifier.notify([Topic::Thread(lease.thread), Topic::Run(lease.run)]);
        Ok(finished)
    }

    async fn set_delivered(&self, thread: i64, run: i64, delivered: bool) -> Result<Option<i64>, StoreError> {
        self.db.set_delivered(thread, run, delivered).await
    }

    async fn thread(&self, key: &ThreadKey, include: ThreadParts) -> Result<Option<ThreadView>, StoreError> {
        self.db.thread(key, include).await
    }

    async fn threads(&self, owner: &str, page: &ThreadPage) -> Result<Vec<ThreadSummary>, StoreError> {
        self.db.threads(owner, page).await
    }

    async fn update(&self, expected: ThreadVersion, update: &ThreadUpdate<'_>) -> Result<bool, StoreError> {
        self.db.update(expected, update).await
    }

    async fn messages(&self, thread: i64, query: &MessageQuery) -> Result<MessagePage, StoreError> {
        self.db.messages(thread, *query).await
    }

    async fn set_feedback(
        &self,
        thread: i64,
        message: &MessageId,
        feedback: Option<&Feedback>,
    ) -> Result<bool, StoreError> {
        self.db.set_feedback(thread, message, feedback).await
    }

    async fn content(&self, key: &ThreadKey) -> Result<Option<ThreadContent>, StoreError> {
        self.db.content(key).await
    }

    async fn insert(&self, thread: NewThread<'_>) -> Result<bool, StoreError> {
        self.db.insert(thread).await
    }

    async fn thread_of_run(&self, owner: &str, run: &RunId) -> Result<Option<ThreadId>, StoreError> {
        self.db.thread_of_run(owner, run).await
    }

    async fn run(&self, thread: i64, id: &RunId) -> Result<Option<RunRecord>, StoreError> {
        self.db.run(thread, id).await
    }

    async fn end_state(&self, thread: i64, by: EndedRun<'_>) -> Result<Option<EndState>, StoreError> {
        self.db.end_state(thread, by).await
    }

    async fn events(&self, run: i64, after: u64, max_bytes: usize) -> Result<Option<EventPage>, StoreError> {
        self.db.events(run, after, max_bytes).await
    }

    async fn run_start(&self, run: i64) -> Result<Option<RunStart>, StoreError> {
        self.db.run_start(run).await
    }

    async fn delete(&self, thread: i64) -> Result<bool, StoreError> {
        let deleted = self.db.delete(thread).await?;
        self.db.notifier.notify([Topic::Thread(thread)]);
        Ok(deleted)
    }

    async fn sweep(&self, retention: &Retention, now: Millis) -> Result<SweepResult, StoreError> {
        self.db.sweep(retention, now).await
    }

    async fn lost_runs(&self, _holder: &str, now: Millis, limit: usize) -> Result<Vec<LostRun>, StoreError> {
        self.db.lost_runs(now, limit).await
    }

    async fn take_over(
        &self,
        lost: &Lease,
        holder: &str,
        now: Millis,
        until: Millis,
    ) -> Result<Option<Lease>, StoreError> {
        self.db.take_over(lost, holder, now, until).await
    }

    async fn check(&self) -> Result<(), StoreError> {
        self.db.check().await
    }

    fn shared(&self) -> Option<&dyn SharedStore> {
        Some(self)
    }
}

#[async_trait]
impl SharedStore for PostgresStore {
    async fn renew(&self, holder: &str, until: Millis) -> Result<Vec<HeldLease>, StoreError> {
        self.db.renew(holder, until).await
    }

    async fn request_cancel(&self, thread: i64, run: &RunId) -> Result<CancelRequest, StoreError> {
        let requested = self.db.request_cancel(thread, run).await?;
        self.db.notifier.notify([Topic::Cancels]);
        Ok(requested)
    }

    async fn cancel_requests(&self, holder: &str) -> Result<Vec<i64>, StoreError> {
        self.db.cancel_requests(holder).await
    }

    fn announce(&self, text: String) {
        self.db.notifier.announce(text);
    }

    fn signals(&self) -> &Signals {
        &self.signals
    }
}
