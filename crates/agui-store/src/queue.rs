//! Queued runs: requests that wait for their turn on a thread, and that survive their server. The [`RunQueue`] trait, its
//! arguments and results.

use async_trait::async_trait;

use super::{Millis, QueueNumber, StoreResult, ThreadKey, ThreadNumber};
use agui_protocol::RunId;

/// Keeps the queued runs of a [`Store`](super::Store).
///
/// A queued run has no place in the tree of its thread. It becomes a run in the transaction of [`begin`](super::Store::begin) with its
/// number as [`NewRun::queued`](super::NewRun::queued), which removes it. So it begins at most once, whichever processes try.
/// It is removed with its thread. [`Store::stored_bytes`](super::Store::stored_bytes) counts its request.
#[async_trait]
pub trait RunQueue: Send + Sync {
    /// Stores a queued run, after the others of its thread. Writes nothing unless the result is [`Enqueued::Stored`].
    async fn enqueue(&self, run: &NewQueuedRun<'_>) -> StoreResult<Enqueued>;

    /// Lists the queued runs of a thread, the next one first.
    async fn queued_runs(&self, owner: &str, thread: ThreadNumber) -> StoreResult<Vec<QueuedRun>>;

    /// Reads the request of a queued run.
    async fn queued_request(&self, run: QueueNumber) -> StoreResult<Option<String>>;

    /// Lists queued runs that `holder` may take, the oldest first. In a shared store these are the released ones, and those that
    /// could have begun since `before`: the first ones of threads without a running run. Otherwise these are all.
    async fn lost_queued_runs(&self, before: Millis, limit: usize) -> StoreResult<Vec<QueuedRun>>;

    /// Makes a process the holder of a queued run. Returns `false`, without an effect, if the run is gone or was taken since it was
    /// listed.
    async fn take_queued_run(
        &self,
        run: &QueuedRun,
        holder: &str,
        now: Millis,
    ) -> StoreResult<bool>;

    /// Removes a queued run, and increases the version of its thread by one. Returns whether there was one.
    async fn remove_queued_run(&self, thread: ThreadNumber, id: &RunId) -> StoreResult<bool>;

    /// Gives away all queued runs of a holder, which other processes can take at once.
    async fn release_queued_runs(&self, holder: &str) -> StoreResult<()>;
}

/// A run to queue.
#[derive(Debug, Clone)]
pub struct NewQueuedRun<'a> {
    /// The thread.
    pub key: &'a ThreadKey,
    /// The id of the run.
    pub run_id: &'a RunId,
    /// A digest of the request.
    pub asked: Option<&'a str>,
    /// The name of its agent.
    pub agent: &'a str,
    /// The whole request as JSON.
    pub request: &'a str,
    /// The process that begins it when its turn comes.
    pub holder: &'a str,
    /// The current time.
    pub now: Millis,
    /// The largest number of queued runs of the thread, including this one.
    pub max_queued: usize,
}

/// The result of queueing a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Enqueued {
    /// It is stored.
    Stored(QueuedRun),
    /// A queued run has its id.
    Exists(QueuedRun),
    /// The thread has the largest number of queued runs.
    Full,
    /// There is no such thread.
    NoThread,
}

/// A queued run, without its request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueuedRun {
    /// Its number, which orders the queue of its thread.
    pub number: QueueNumber,
    /// The key of its thread.
    pub key: ThreadKey,
    /// The number of its thread.
    pub thread: ThreadNumber,
    /// Its id.
    pub run_id: RunId,
    /// The name of its agent.
    pub agent: String,
    /// A digest of its request.
    pub asked: Option<String>,
    /// The process that begins it when its turn comes; empty if it was released.
    pub holder: String,
    /// The number of times that another process has taken it.
    pub takeovers: u64,
    /// The time at which it was queued.
    pub queued_at: Millis,
}
