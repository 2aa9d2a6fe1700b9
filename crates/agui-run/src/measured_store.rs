//! The store of a server, and the metrics of its operations.

use std::{collections::BTreeMap, sync::Arc};

use agui_agent::files::{FileOptions, Files};
use agui_observe::metrics::Metrics;
use agui_protocol::{MessageId, ResumeEntry, RunId};
use agui_store::{
    BeginOutcome, EndState, EndedRun, EventBatch, EventPage, Feedback, FinishedRun, Lease, LostRun,
    MessagePage, MessageQuery, Millis, NewRun, Retention, RunEnd, RunNumber, RunRecord, RunStart,
    SharedStore, Store, StoreError, SweepResult, Thread, ThreadContent, ThreadKey, ThreadNumber,
    ThreadPage, ThreadParts, ThreadUpdate, ThreadVersion, ThreadView,
};

/// Measures the operations of a [`Store`], but not of a [`SharedStore`].
#[derive(Clone)]
pub struct MeasuredStore {
    pub(crate) store: Arc<dyn Store>,
    metrics: Metrics,
}

/// Declares methods of [`Store`], each measured under its name.
///
/// They are no implementation of [`Store`]: that would allocate a second future for each call.
macro_rules! measured {
    ($($name:ident($($argument:ident: $type:ty),*) -> $output:ty;)*) => {$(
        pub async fn $name(&self, $($argument: $type),*) -> Result<$output, StoreError> {
            self.measure(stringify!($name), self.store.$name($($argument),*)).await
        }
    )*};
}

impl MeasuredStore {
    measured! {
        begin(run: &NewRun<'_>) -> BeginOutcome;
        promote(lease: &Lease, request: Option<&str>, first: &EventBatch) -> bool;
        finish(lease: &Lease, end: &RunEnd<'_>) -> Option<FinishedRun>;
        set_delivered(thread: ThreadNumber, run: RunNumber, delivered: bool) -> Option<i64>;
        set_alias(thread: ThreadNumber, run: RunNumber, alias: &RunId) -> ();
        thread(key: &ThreadKey, include: ThreadParts) -> Option<ThreadView>;
        threads(owner: &str, page: &ThreadPage) -> Vec<Thread>;
        update(expected: ThreadVersion, update: &ThreadUpdate<'_>) -> bool;
        messages(thread: &Thread, query: &MessageQuery) -> MessagePage;
        set_feedback(thread: ThreadNumber, message: &MessageId, feedback: Option<&Feedback>) -> bool;
        content(key: &ThreadKey) -> Option<ThreadContent>;
        insert(key: &ThreadKey, content: &ThreadContent) -> bool;
        run(owner: &str, thread: ThreadNumber, id: &RunId) -> Option<RunRecord>;
        attempts(owner: &str, thread: ThreadNumber, id: &RunId) -> Vec<RunRecord>;
        end_state(owner: &str, thread: ThreadNumber, run: EndedRun<'_>) -> Option<EndState>;
        answered(owner: &str, thread: ThreadNumber) -> Vec<ResumeEntry>;
        events(owner: &str, run: RunNumber, after: u64, max_bytes: usize) -> Option<EventPage>;
        events_of_runs(after: &BTreeMap<RunNumber, u64>, max_bytes: usize) -> BTreeMap<RunNumber, EventPage>;
        run_start(owner: &str, run: RunNumber) -> Option<RunStart>;
        stored_bytes(owner: Option<&str>) -> u64;
        delete(thread: ThreadNumber) -> bool;
        delete_all(owner: &str) -> u64;
        sweep(retention: &Retention, now: Millis) -> SweepResult;
        lost_runs(holder: &str, now: Millis, limit: usize) -> Vec<LostRun>;
        take_over(lost: &Lease, holder: &str, now: Millis, until: Millis) -> Option<Lease>;
        check() -> ();
    }

    pub fn new(store: Arc<dyn Store>, metrics: Metrics) -> Self {
        Self { store, metrics }
    }

    /// Appends to logs, and counts the events.
    pub async fn append(&self, batches: &[EventBatch]) -> Result<Vec<bool>, StoreError> {
        let appended = self.measure("append", self.store.append(batches)).await?;
        self.metrics
            .store
            .appended(batches.len(), batches.iter().map(|batch| batch.events.len()).sum());
        Ok(appended)
    }

    /// Returns whether the thread of this number was deleted. Its key may have a newer thread.
    pub(crate) async fn is_deleted(
        &self,
        key: &ThreadKey,
        number: ThreadNumber,
    ) -> Result<bool, StoreError> {
        let view = self.thread(key, ThreadParts::default()).await?;
        Ok(view.is_none_or(|view| view.thread.number != number))
    }

    pub fn files(&self, options: FileOptions) -> Option<Files> {
        Files::from_store(&self.store, options)
    }

    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    pub fn shared(&self) -> Option<&dyn SharedStore> {
        self.store.shared()
    }

    async fn measure<T>(
        &self,
        name: &'static str,
        operation: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        let under_way = self.metrics.store.begin(name);
        let result = operation.await;
        drop(under_way);
        match &result {
            // The store has not failed if the lease is lost.
            Ok(_) | Err(StoreError::LeaseLost) => {}
            Err(error) if error.is_transient() => self.metrics.store.failed(name, "unavailable"),
            Err(_) => self.metrics.store.failed(name, "failed"),
        }
        result
    }
}
