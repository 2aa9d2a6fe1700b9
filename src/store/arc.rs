//! [`Store`] for a shared store: an `Arc` of one can be given to a server, and another one kept.

use std::sync::Arc;

use async_trait::async_trait;

use super::{
    EndState, EndedRun, EventPage, Feedback, Lease, LostRun, MessagePage, MessageQuery, Millis, NewThread, Retention,
    RunRecord, RunStart, SharedStore, Store, StoreError, SweepResult, ThreadContent, ThreadKey, ThreadPage,
    ThreadParts, ThreadSummary, ThreadVersion, ThreadView,
    write::{BeginOutcome, EventBatch, FinishedRun, NewRun, RunEnd, ThreadUpdate},
};
use crate::protocol::{MessageId, RunId, ThreadId};

#[async_trait]
impl<S: Store + ?Sized> Store for Arc<S> {
    async fn begin(&self, run: &NewRun<'_>) -> Result<BeginOutcome, StoreError> {
        (**self).begin(run).await
    }

    async fn append(&self, batches: &[EventBatch]) -> Result<Vec<bool>, StoreError> {
        (**self).append(batches).await
    }

    async fn finish(&self, lease: &Lease, end: &RunEnd<'_>) -> Result<Option<FinishedRun>, StoreError> {
        (**self).finish(lease, end).await
    }

    async fn set_delivered(&self, thread: i64, run: i64, delivered: bool) -> Result<Option<i64>, StoreError> {
        (**self).set_delivered(thread, run, delivered).await
    }

    async fn thread(&self, key: &ThreadKey, include: ThreadParts) -> Result<Option<ThreadView>, StoreError> {
        (**self).thread(key, include).await
    }

    async fn threads(&self, owner: &str, page: &ThreadPage) -> Result<Vec<ThreadSummary>, StoreError> {
        (**self).threads(owner, page).await
    }

    async fn update(&self, expected: ThreadVersion, update: &ThreadUpdate<'_>) -> Result<bool, StoreError> {
        (**self).update(expected, update).await
    }

    async fn messages(&self, thread: i64, query: &MessageQuery) -> Result<MessagePage, StoreError> {
        (**self).messages(thread, query).await
    }

    async fn set_feedback(
        &self,
        thread: i64,
        message: &MessageId,
        feedback: Option<&Feedback>,
    ) -> Result<bool, StoreError> {
        (**self).set_feedback(thread, message, feedback).await
    }

    async fn content(&self, key: &ThreadKey) -> Result<Option<ThreadContent>, StoreError> {
        (**self).content(key).await
    }

    async fn insert(&self, thread: NewThread<'_>) -> Result<bool, StoreError> {
        (**self).insert(thread).await
    }

    async fn thread_of_run(&self, owner: &str, run: &RunId) -> Result<Option<ThreadId>, StoreError> {
        (**self).thread_of_run(owner, run).await
    }

    async fn run(&self, thread: i64, id: &RunId) -> Result<Option<RunRecord>, StoreError> {
        (**self).run(thread, id).await
    }

    async fn end_state(&self, thread: i64, by: EndedRun<'_>) -> Result<Option<EndState>, StoreError> {
        (**self).end_state(thread, by).await
    }

    async fn events(&self, run: i64, after: u64, max_bytes: usize) -> Result<Option<EventPage>, StoreError> {
        (**self).events(run, after, max_bytes).await
    }

    async fn run_start(&self, run: i64) -> Result<Option<RunStart>, StoreError> {
        (**self).run_start(run).await
    }

    async fn delete(&self, thread: i64) -> Result<bool, StoreError> {
        (**self).delete(thread).await
    }

    async fn sweep(&self, retention: &Retention, now: Millis) -> Result<SweepResult, StoreError> {
        (**self).sweep(retention, now).await
    }

    async fn lost_runs(&self, holder: &str, now: Millis, limit: usize) -> Result<Vec<LostRun>, StoreError> {
        (**self).lost_runs(holder, now, limit).await
    }

    async fn take_over(
        &self,
        lost: &Lease,
        holder: &str,
        now: Millis,
        until: Millis,
    ) -> Result<Option<Lease>, StoreError> {
        (**self).take_over(lost, holder, now, until).await
    }

    async fn check(&self) -> Result<(), StoreError> {
        (**self).check().await
    }

    fn shared(&self) -> Option<&dyn SharedStore> {
        (**self).shared()
    }
}
