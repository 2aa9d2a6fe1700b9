//! Threads at rest: what outlives a run, a connection and a process.
//!
//! [`Store`] is the interface. [`MemoryStore`] keeps everything in this process, [`SqliteStore`] in a file that belongs
//! to one process, [`PostgresStore`] in a database that several processes share. A store knows nothing of agents and
//! HTTP; it keeps what it is given and decides who may write.
//!
//! # Threads are trees
//! A thread belongs to an owner: its key is the pair of owner and thread id. Each of its messages has a parent, and the
//! thread's *head* names the last message of the current branch. Messages are never removed but with their thread, so a
//! branch that was left stays readable. A run writes the messages that are new, never the whole thread.
//!
//! # Who may write
//! A thread has at most one running run. The process that drives it holds the thread's [`Lease`]; every write of a run
//! names its lease and is refused with [`StoreError::LeaseLost`] once the run has ended, the thread was deleted, or
//! another process took the lease over. A lease in a shared store ends at a time unless it is renewed; then any process
//! may [take it over](Store::take_over) to close the run.
//!
//! # What a write promises
//! A write that returned is visible to every later read and survives the death of this process. It happens whole or not
//! at all. After an error that is [transient](StoreError::is_transient) the write may or may not have happened, and
//! repeating it is safe: an [append](Store::append) of events that are there changes nothing, and a
//! [finish](Store::finish) that repeats the recorded end of the run succeeds.

mod memory;
mod model;
mod open_error;
mod postgres;
mod retention;
mod rows;
mod signals;
mod sqlite;
mod text;
mod write;

use async_trait::async_trait;

pub use memory::MemoryStore;
pub use model::{
    CancelRequest, EndState, EndedRun, EventPage, HeldLease, Lease, LostRun, MessageNode, MessageOrigin, Millis,
    Retention, RunFailure, RunRecord, RunStatus, SweepResult, Thread, ThreadKey, ThreadPage, ThreadParts, ThreadSize,
    ThreadSummary, ThreadVersion, ThreadView, branch_of, now,
};
pub use open_error::OpenError;
pub use postgres::PostgresStore;
pub use signals::{Signals, Topic, TopicWatch};
pub use sqlite::SqliteStore;
pub use write::{BeginOutcome, BranchWrite, EventBatch, FinishedRun, NewRun, RunEnd};

use crate::protocol::RunId;

/// Why a store did not do what it was asked for.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The caller does not hold the thread's lease, or no longer.
    #[error("the lease of this run was lost")]
    LeaseLost,
    /// The store is unreachable, busy or full. The same call may succeed later.
    #[error("the store is not available")]
    Unavailable(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// Stored data is unreadable, or the store rejects the data. The same call will fail again.
    #[error("the store failed")]
    Failed(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl StoreError {
    /// Returns whether the same call may succeed later.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Unavailable(_))
    }
}

/// Keeps threads, their messages and runs, and the logs of detached runs.
///
/// Threads and runs have numbers that are never used twice within the life of a process, so an operation acts on the
/// row that its caller has looked up, also when a thread of the same id was made since. All times are milliseconds since
/// 1970 and come from the caller.
#[async_trait]
pub trait Store: Send + Sync + 'static {
    /// Begins a run: makes the thread if `run.expected` is `None`, takes its lease, records the run as running, and stores
    /// what the client brought. An ended run of the same id is replaced, with its log.
    ///
    /// Writes nothing when another run is running, the thread is not as `run.expected` says, or it would become too large.
    async fn begin(&self, run: &NewRun<'_>) -> Result<BeginOutcome, StoreError>;

    /// Appends to the logs of runs: all batches, or after an error perhaps none. Returns for each batch in order whether
    /// it is in the log; `false` means that its lease was lost.
    async fn append(&self, batches: &[EventBatch]) -> Result<Vec<bool>, StoreError>;

    /// Ends a run and gives its lease back: stores the run's messages, moves the head, appends the last events of its
    /// log, and records how it ended.
    ///
    /// Changes nothing and returns `None` when the run has ended with the same status at the same time: that is a
    /// repetition of a write whose response was lost.
    async fn finish(&self, lease: &Lease, end: &RunEnd<'_>) -> Result<Option<FinishedRun>, StoreError>;

    /// Corrects whether the response of an ended run reached a client to its end. The thread's version goes up by one.
    async fn set_delivered(&self, thread: i64, run: i64, delivered: bool) -> Result<(), StoreError>;

    /// Reads a thread, with the parts that `include` asks for, as they were at one moment.
    async fn thread(&self, key: &ThreadKey, include: ThreadParts) -> Result<Option<ThreadView>, StoreError>;

    /// Lists the threads of an owner, those with the newest run first.
    async fn threads(&self, owner: &str, page: &ThreadPage) -> Result<Vec<ThreadSummary>, StoreError>;

    /// Reads a run of a thread.
    async fn run(&self, thread: i64, id: &RunId) -> Result<Option<RunRecord>, StoreError>;

    /// Reads what an ended run left: where its branch ends, its state, and its interrupts without those that any run
    /// of the thread has answered since. `None` when there is no such run, or it is running.
    async fn end_state(&self, thread: i64, by: EndedRun<'_>) -> Result<Option<EndState>, StoreError>;

    /// Reads the events of a run's log after the one with number `after`: none, or at least one and no more than about
    /// `max_bytes` of them. `None` when there is no such run.
    async fn events(&self, run: i64, after: u64, max_bytes: usize) -> Result<Option<EventPage>, StoreError>;

    /// Deletes a thread with its messages, runs and logs, whether a run is running or not. Returns whether it existed.
    async fn delete(&self, thread: i64) -> Result<bool, StoreError>;

    /// Removes what `retention` does not keep. Threads with a running run stay.
    async fn sweep(&self, retention: &Retention, now: Millis) -> Result<SweepResult, StoreError>;

    /// Lists runs without a process that drives them, the longest abandoned first: those whose lease ended before `now`,
    /// and in a store that is not shared those of every other holder.
    async fn lost_runs(&self, holder: &str, now: Millis, limit: usize) -> Result<Vec<LostRun>, StoreError>;

    /// Takes over the lease of a lost run for `holder`. `None` when the run is not lost any more.
    async fn take_over(
        &self,
        lost: &Lease,
        holder: &str,
        now: Millis,
        until: Millis,
    ) -> Result<Option<Lease>, StoreError>;

    /// Checks that the store can be used.
    async fn check(&self) -> Result<(), StoreError>;

    /// Returns what processes that share this store need; `None` when it belongs to this process.
    fn shared(&self) -> Option<&dyn SharedStore> {
        None
    }
}

/// What processes that share a store need of it.
#[async_trait]
pub trait SharedStore: Send + Sync {
    /// Extends all leases of a holder that have not been taken over, and lists them.
    async fn renew(&self, holder: &str, until: Millis) -> Result<Vec<HeldLease>, StoreError>;

    /// Asks the holder of a run's lease to cancel the run.
    async fn request_cancel(&self, thread: i64, run: &RunId) -> Result<CancelRequest, StoreError>;

    /// Lists the runs of a holder that were asked to be cancelled.
    async fn cancel_requests(&self, holder: &str) -> Result<Vec<i64>, StoreError>;

    /// Returns how this process learns of changes by others.
    fn signals(&self) -> &Signals;
}
