//! Threads at rest: what outlives a run, a connection and a process.
//!
//! [`Store`] is the one interface; [`Memory`] keeps everything in this process, [`Sql`] in a file of SQLite or in
//! Postgres, which several processes can share. A store knows nothing of agents and HTTP: it keeps what it is
//! given, and it decides who may write.
//!
//! # Who may write
//! A thread has at most one running run, and whoever drives it holds the thread's [`Lease`]. Every write of a
//! run names its lease, and is refused with [`StoreError::LeaseLost`] when the thread was leased again since,
//! was deleted, or the run has ended. So a process that was thought dead cannot write over what was done
//! after it. A lease lasts until the time it was taken or renewed for; then anybody may
//! [take it over](Store::take_over), to close the run that nobody drives any more.
//!
//! # What a write promises
//! A write that succeeded is there for every later read, also of another process that shares the store, and
//! after a crash of this one. It is there whole or not at all. An error that [may pass](StoreError::is_transient)
//! leaves open whether the write happened; doing it again is safe: an [append](Store::append) of events that
//! are there already changes nothing, and a [finish](Store::finish) of a run that has just been finished
//! under the same lease succeeds.

mod memory;
mod record;
mod sql;

use async_trait::async_trait;

pub use memory::Memory;
pub use record::{
    Begin, CancelRequest, Events, Held, Lease, Millis, NewRun, RunEnd, RunFailure, RunRecord, RunStatus, Thread,
    ThreadContent, ThreadPage, ThreadSummary, now,
};
pub use sql::{OpenError, Sql};

use crate::protocol::{RunId, ThreadId};

/// Why the store did not do what it was asked for.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// Whoever asks does not hold the thread's lease, or no longer.
    #[error("the lease of this run was lost")]
    LeaseLost,
    /// The store cannot be reached, or is busy, or full. Trying again may help.
    #[error("the store is not available")]
    Unavailable(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// What is stored cannot be read, or the store cannot take it. Trying again will not help.
    #[error("the store failed")]
    Failed(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl StoreError {
    /// Whether the same call may succeed later.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Unavailable(_))
    }
}

/// A batch of events for a run's log.
#[derive(Debug, Clone)]
pub struct Append {
    /// Under which lease.
    pub lease: Lease,
    /// The number of the first event; a run's events are numbered from 1.
    pub first: u64,
    /// Each event as one line of JSON.
    pub events: Vec<String>,
}

/// What is kept, and for how long. `None` keeps everything.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Retention {
    /// For how many milliseconds a thread is kept after it was last changed.
    pub thread_age: Option<u64>,
    /// How many threads are kept, the most recently changed ones.
    pub threads: Option<u64>,
    /// For how many milliseconds the log of a run is kept after the run ended.
    pub log_age: Option<u64>,
    /// How many logs of ended runs are kept, the most recently ended ones.
    pub logs: Option<u64>,
}

/// What was removed for [`Retention`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Pruned {
    /// Threads.
    pub threads: u64,
    /// Logs of runs.
    pub logs: u64,
}

/// Keeps threads, their runs, and the logs of runs that outlive their connection.
///
/// Identifiers are any text: empty, with any character, or very long. `now` and all other times are
/// milliseconds since 1970; the caller says what time it is.
#[async_trait]
pub trait Store: Send + Sync + 'static {
    /// Whether other processes may use the same store at the same time. If not, leases of other holders are
    /// those of processes that are gone.
    fn is_shared(&self) -> bool;

    /// Begins a run: makes the thread if there is none, takes its lease, and records the run as running. A
    /// record of an ended run with the same id is replaced, with its log.
    ///
    /// Where nobody else can have made the thread, the answer may come before the write, which follows at once: every
    /// later read waits for it, and so does the run's end. A process that crashes within these milliseconds has not
    /// begun the run. One that outlives its connection is written first.
    async fn begin(&self, run: &NewRun) -> Result<Begin, StoreError>;

    /// Replaces a thread's content while the run goes on.
    async fn save(&self, lease: &Lease, content: &ThreadContent) -> Result<(), StoreError>;

    /// Appends to the logs of runs, all batches or, on an error, perhaps none. Answers, for each batch in
    /// order, whether it is in the log: `false` is a lost lease.
    async fn append(&self, batches: &[Append]) -> Result<Vec<bool>, StoreError>;

    /// Ends a run: replaces the thread's content if there is a new one, appends the last events if there are
    /// any (`last.lease` is the same lease), records how the run ended, and gives the lease back. All of it
    /// or nothing.
    async fn finish(
        &self,
        lease: &Lease,
        content: Option<&ThreadContent>,
        last: Option<&Append>,
        end: &RunEnd,
    ) -> Result<(), StoreError>;

    /// Extends all leases of a holder, and says which there are.
    async fn renew(&self, holder: &str, until: Millis) -> Result<Vec<Held>, StoreError>;

    /// The leases of a holder whose run somebody asked to cancel.
    async fn cancel_requests(&self, holder: &str) -> Result<Vec<Held>, StoreError>;

    /// Asks whoever drives a run to cancel it.
    async fn request_cancel(&self, thread: &ThreadId, run: &RunId) -> Result<CancelRequest, StoreError>;

    /// Leases that ended before `now` without being given back, the longest ended first; a store that is
    /// not [shared](Self::is_shared) lists all that are not `holder`'s.
    async fn lost(&self, holder: &str, now: Millis, limit: usize) -> Result<Vec<Lease>, StoreError>;

    /// Takes over a lost lease, for the run that it was taken for. `None` when it is not lost any more.
    async fn take_over(
        &self,
        lost: &Lease,
        holder: &str,
        now: Millis,
        until: Millis,
    ) -> Result<Option<Lease>, StoreError>;

    /// A thread, if it exists.
    async fn thread(&self, id: &ThreadId) -> Result<Option<Thread>, StoreError>;

    /// The threads of an owner, most recently changed first.
    async fn threads(&self, owner: Option<&str>, page: &ThreadPage) -> Result<Vec<ThreadSummary>, StoreError>;

    /// A run, if it exists.
    async fn run(&self, thread: &ThreadId, run: &RunId) -> Result<Option<RunRecord>, StoreError>;

    /// The runs of a thread, newest first.
    async fn runs(&self, thread: &ThreadId, limit: usize) -> Result<Vec<RunRecord>, StoreError>;

    /// Events of a run's log after the one with number `after`, in order: none, or at least one and no more
    /// than about `max_bytes` of them. `None` when there is no such run.
    async fn events(
        &self,
        thread: &ThreadId,
        run: &RunId,
        after: u64,
        max_bytes: usize,
    ) -> Result<Option<Events>, StoreError>;

    /// Deletes a thread with its runs and their logs, whoever holds its lease. `false` when there was none.
    async fn delete(&self, thread: &ThreadId) -> Result<bool, StoreError>;

    /// Removes what need not be kept. Threads with a running run stay.
    async fn prune(&self, retention: &Retention, now: Millis) -> Result<Pruned, StoreError>;

    /// Whether the store can be used; for readiness checks.
    async fn check(&self) -> Result<(), StoreError>;
}
