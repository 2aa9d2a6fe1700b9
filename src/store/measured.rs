//! A store whose operations are measured.

use std::sync::Arc;

use async_trait::async_trait;

use super::{
    EndState, EndedRun, EventPage, Feedback, Lease, LostRun, MessagePage, MessageQuery, Millis, NewThread, Retention,
    RunRecord, RunStart, SharedStore, Store, StoreError, SweepResult, ThreadContent, ThreadKey, ThreadPage,
    ThreadParts, ThreadSummary, ThreadVersion, ThreadView,
    write::{BeginOutcome, EventBatch, FinishedRun, NewRun, RunEnd, ThreadUpdate},
};
use crate::{
    metrics::Metrics,
    protocol::{MessageId, RunId, ThreadId},
};

/// Passes operations on to a store, and measures them. Those of [`SharedStore`] are not measured.
pub(crate) struct MeasuredStore {
    store: Arc<dyn Store>,
    metrics: Metrics,
}

impl MeasuredStore {
    pub(crate) fn new(store: Arc<dyn Store>, metrics: Metrics) -> Self {
        Self { store, metrics }
    }

    async fn measure<T>(
        &self,
        operation: &'static str,
        future: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        let under_way = self.metrics.store.begin(operation);
        let result = future.await;
        drop(under_way);
        match &result {
            // A lost lease is no failure of the store.
            Ok(_) | Err(StoreError::LeaseLost) => {}
            Err(StoreError::Unavailable(_)) => self.metrics.store.failed(operation, "unavailable"),
            Err(StoreError::Failed(_)) => self.metrics.store.failed(operation, "failed"),
        }
        result
    }
}

#[async_trait]
impl Store for MeasuredStore {
    async fn begin(&self, run: &NewRun<'_>) -> Result<BeginOutcome, StoreError> {
        self.measure("begin", self.store.begin(run)).await
    }

    async fn append(&self, batches: &[EventBatch]) -> Result<Vec<bool>, StoreError> {
        let appended = self.measure("append", self.store.append(batches)).await?;
        self.metrics.store.appended(batches.len(), batches.iter().map(|batch| batch.events.len()).sum());
        Ok(appended)
    }

    async fn finish(&self, lease: &Lease, end: &RunEnd<'_>) -> Result<Option<FinishedRun>, StoreError> {
        self.measure("finish", self.store.finish(lease, end)).await
    }

    async fn set_delivered(&self, thread: i64, run: i64, delivered: bool) -> Result<Option<i64>, StoreError> {
        self.measure("set_delivered", self.store.set_delivered(thread, run, delivered)).await
    }

    async fn thread(&self, key: &ThreadKey, include: ThreadParts) -> Result<Option<ThreadView>, StoreError> {
        self.measure("thread", self.store.thread(key, include)).await
    }

    async fn threads(&self, owner: &str, page: &ThreadPage) -> Result<Vec<ThreadSummary>, StoreError> {
        self.measure("threads", self.store.threads(owner, page)).await
    }

    async fn update(&self, expected: ThreadVersion, update: &ThreadUpdate<'_>) -> Result<bool, StoreError> {
        self.measure("update", self.store.update(expected, update)).await
    }

    async fn messages(&self, thread: i64, query: &MessageQuery) -> Result<MessagePage, StoreError> {
        self.measure("messages", self.store.messages(thread, query)).await
    }

    async fn set_feedback(
        &self,
        thread: i64,
        message: &MessageId,
        feedback: Option<&Feedback>,
    ) -> Result<bool, StoreError> {
        self.measure("set_feedback", self.store.set_feedback(thread, message, feedback)).await
    }

    async fn content(&self, key: &ThreadKey) -> Result<Option<ThreadContent>, StoreError> {
        self.measure("content", self.store.content(key)).await
    }

    async fn insert(&self, thread: NewThread<'_>) -> Result<bool, StoreError> {
        self.measure("insert", self.store.insert(thread)).await
    }

    async fn thread_of_run(&self, owner: &str, run: &RunId) -> Result<Option<ThreadId>, StoreError> {
        self.measure("thread_of_run", self.store.thread_of_run(owner, run)).await
    }

    async fn run(&self, thread: i64, id: &RunId) -> Result<Option<RunRecord>, StoreError> {
        self.measure("run", self.store.run(thread, id)).await
    }

    async fn end_state(&self, thread: i64, by: EndedRun<'_>) -> Result<Option<EndState>, StoreError> {
        self.measure("end_state", self.store.end_state(thread, by)).await
    }

    async fn events(&self, run: i64, after: u64, max_bytes: usize) -> Result<Option<EventPage>, StoreError> {
        self.measure("events", self.store.events(run, after, max_bytes)).await
    }

    async fn run_start(&self, run: i64) -> Result<Option<RunStart>, StoreError> {
        self.measure("run_start", self.store.run_start(run)).await
    }

    async fn delete(&self, thread: i64) -> Result<bool, StoreError> {
        self.measure("delete", self.store.delete(thread)).await
    }

    async fn sweep(&self, retention: &Retention, now: Millis) -> Result<SweepResult, StoreError> {
        let swept = self.measure("sweep", self.store.sweep(retention, now)).await?;
        self.metrics.store.removed(swept.threads, swept.logs);
        Ok(swept)
    }

    async fn lost_runs(&self, holder: &str, now: Millis, limit: usize) -> Result<Vec<LostRun>, StoreError> {
        self.measure("lost_runs", self.store.lost_runs(holder, now, limit)).await
    }

    async fn take_over(
        &self,
        lost: &Lease,
        holder: &str,
        now: Millis,
        until: Millis,
    ) -> Result<Option<Lease>, StoreError> {
        let taken = self.measure("take_over", self.store.take_over(lost, holder, now, until)).await?;
        self.metrics.runs.leases_taken_over.inc_by(u64::from(taken.is_some()));
        Ok(taken)
    }

    async fn check(&self) -> Result<(), StoreError> {
        self.measure("check", self.store.check()).await
    }

    fn shared(&self) -> Option<&dyn SharedStore> {
        self.store.shared()
    }
}
