//! Stored threads: the [`Store`] trait, and its implementations in memory, SQLite and Postgres.
//!
//! A store also decides which process may write to a thread. It knows nothing of agents and HTTP. Its module
//! `contract` (a feature) checks the promises of [`Store`] on every implementation.
//!
//! To change the stored data, change the types in `model` and `write`, their conversions in
//! `columns` and `rows`, the tables and statements in `sqlite` and `postgres`, and the contract. A
//! statement of more than three lines has a file of its own. It takes named parameters in SQLite,
//! and one JSON argument or a few parameters in Postgres.

// Code that only some features use would need a condition on each function. The build with all features finds dead code.
#![cfg_attr(not(all(feature = "postgres", feature = "sqlite")), allow(dead_code, unused_imports))]
// `unwrap_used` is in the root's Cargo.toml. A panic would end a run or a request, so a comment at
// each panic says why input cannot reach it.
#![cfg_attr(not(test), warn(clippy::expect_used, clippy::panic, clippy::unreachable))]

mod columns;
#[cfg(feature = "contract")]
pub mod contract;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
mod damage;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
mod damage_check;
mod error;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
mod file_chunks;
#[allow(missing_docs, reason = "not a part of the interface")]
#[doc(hidden)]
pub mod files;
mod json_len;
mod memory;
#[doc(hidden)]
pub mod model;
mod numbers;
mod pages;
#[cfg(feature = "postgres")]
mod postgres;
mod queue;
mod read_permits;
mod retention;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
mod rows;
#[allow(missing_docs, reason = "not a part of the interface")]
#[doc(hidden)]
pub mod sealed;
mod search;
mod signals;
#[cfg(feature = "sqlite")]
mod sqlite;
mod text;
mod thread_content;
mod words;
mod write;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use async_trait::async_trait;

pub(crate) use error::StoreResult;
pub use error::{OpenError, StoreError};
pub(crate) use json_len::json_len;
pub use memory::MemoryStore;
pub use model::{
    CancelRequest, EndReason, EndState, EndedRun, Feedback, Lease, LostRun, MessageNode,
    MessageOrigin, Millis, RunFailure, RunRecord, RunStart, RunStatus, Thread, ThreadKey,
    ThreadParts, ThreadSize, ThreadVersion, ThreadView,
};
pub(crate) use model::{branch_of, now};
pub use numbers::{MessageNumber, QueueNumber, RunNumber, StateNumber, ThreadNumber};
pub use pages::{EventPage, MessagePage, MessageQuery, ThreadPage};
#[cfg(feature = "postgres")]
pub use postgres::PostgresStore;
pub use queue::{Enqueued, NewQueuedRun, QueuedRun, RunQueue};
pub use retention::{Retention, SweepResult};
pub use signals::{Signals, Topic, TopicWatch};
#[cfg(feature = "sqlite")]
pub use sqlite::SqliteStore;
pub use thread_content::{CopiedMessage, CopiedRun, ThreadContent};
pub use write::{
    BeginOutcome, Begun, BranchWrite, EventBatch, FinishedRun, HeadUpdate, NewRun, RunEnd,
    ThreadUpdate,
};

use agui_protocol::{MessageId, ResumeEntry, RunId};

/// Keeps threads, their messages and runs, and the logs of detached runs.
///
/// # Promises
/// 1. **Isolation of owners.** A thread's key is the pair of owner and thread id. The same id of two owners is two
///    threads, and no operation on one reads, locks or changes the other. Every string is a valid owner and a valid id.
/// 2. **Threads are trees.** Each message has a parent, and the thread's *head* names the last message of the current
///    branch. A message is deleted with its thread only, so a branch that was left can still be read.
/// 3. **Ordering.** Numbers of threads, runs and states grow and are not reused while a process lives, so a number of a
///    deleted row never names a later one. Messages of a thread are numbered from 1 without gaps, and a parent has a
///    smaller number than its child. Events of a run are numbered from 1 without gaps.
/// 4. **Fencing.** A thread has at most one running run, and that run has the thread's [`Lease`]. A write that names a
///    lease changes nothing once the run has ended, the thread was deleted, or the lease was taken over:
///    [`finish`](Self::finish) then fails with [`StoreError::LeaseLost`], and [`append`](Self::append) returns `false`.
///    In a shared store a lease ends at a time unless it is renewed; after that time every process may take it over.
/// 5. **Atomicity.** A write happens whole or not at all, also when its caller drops the future.
/// 6. **Durability.** A write that has returned is visible to every later read and survives the end of this process. (A
///    store in memory cannot promise the second part.)
/// 7. **Repetition.** After a [transient](StoreError::is_transient) error a write may have happened or not, and the
///    caller repeats it: appending events that are stored changes nothing, promoting a run again changes nothing, and
///    ending a run again with the same status and time succeeds.
/// 8. **Consistent reads.** [`thread`](Self::thread) returns a thread as it was at one moment. A log that is read with
///    the status of an ended run is complete.
///
/// All times come from the caller, in milliseconds since 1970.
#[async_trait]
pub trait Store: Send + Sync + 'static {
    /// Begins a run: creates the thread if `run.expected` is `None`, takes its lease, stores the run as running, and
    /// stores the client's messages and the first line of the log. If the thread has runs of the same id, this is their
    /// next attempt.
    ///
    /// Writes nothing in these cases, which are checked in this order: `run.queued` is gone; another run is running; another
    /// process holds a queued run of the thread before the first one of `run.holder`; the thread's version is not `run.expected`; `run.asked` is
    /// set, and the thread has a run with the same id or alias and `asked` and a number above
    /// `run.known`; the thread would become larger than `run.max_size`.
    async fn begin(&self, run: &NewRun<'_>) -> StoreResult<BeginOutcome>;

    /// Appends to the logs of runs, all batches in one write. Returns one boolean per batch, in
    /// order: `true` if its events are in the log, `false` if its lease was lost.
    async fn append(&self, batches: &[EventBatch]) -> StoreResult<Vec<bool>>;

    /// Makes a running run a detached one: stores its input if there is a `request`, with the message and the state that
    /// the run began with, and the first events of its log. Returns `false`, without an effect, if the lease was lost.
    /// Doing it again changes nothing and returns `true`.
    async fn promote(
        &self,
        lease: &Lease,
        request: Option<&str>,
        first: &EventBatch,
    ) -> StoreResult<bool>;

    /// Ends a run and releases its lease: stores the run's messages, moves the head, appends the last events of the
    /// log, and records how the run ended.
    ///
    /// Returns `None` and changes nothing when the run has already ended with the same status at the same time.
    ///
    /// # Errors
    /// [`StoreError::LeaseLost`] when the lease was lost, or when the run has ended in another way.
    async fn finish(&self, lease: &Lease, end: &RunEnd<'_>) -> StoreResult<Option<FinishedRun>>;

    /// Stores whether the response of an ended run reached a client to its end, and increases the thread's version by
    /// one. Returns the thread's new version; `None`, without an effect, if the thread does not exist.
    async fn set_delivered(
        &self,
        thread: ThreadNumber,
        run: RunNumber,
        delivered: bool,
    ) -> StoreResult<Option<i64>>;

    /// Gives a run a second id, in place of an earlier one: of a page that lost its connection and asked again. [`run`](Self::run)
    /// finds the run by it, if no run has it as its own id, and a request under it is answered by the run.
    async fn set_alias(
        &self,
        thread: ThreadNumber,
        run: RunNumber,
        alias: &RunId,
    ) -> StoreResult<()>;

    /// Reads the parts of a thread that `include` names, as they were at one moment.
    async fn thread(
        &self,
        key: &ThreadKey,
        include: ThreadParts,
    ) -> StoreResult<Option<ThreadView>>;

    /// Lists the threads of an owner that `page` selects, those with the newest run first, without their states.
    async fn threads(&self, owner: &str, page: &ThreadPage) -> StoreResult<Vec<Thread>>;

    /// Changes a thread, and increases its version by one. Writes nothing and returns `false` if the thread has another
    /// version than `expected`, or if `update` has a head and a run is running.
    async fn update(&self, expected: ThreadVersion, update: &ThreadUpdate<'_>)
    -> StoreResult<bool>;

    /// Reads a page of a thread's messages. The page is empty if there is no such message or thread.
    ///
    /// The default reads all messages of the thread and selects.
    async fn messages(&self, thread: &Thread, query: &MessageQuery) -> StoreResult<MessagePage> {
        let view = self
            .thread(&thread.key, ThreadParts { messages: true, ..ThreadParts::default() })
            .await?;
        let view = view.filter(|view| view.thread.number == thread.number);
        Ok(view.map(|view| MessagePage::select(&view.nodes, *query)).unwrap_or_default())
    }

    /// Sets the owner's opinion of the newest message with this id. `None` removes the opinion.
    /// Returns whether there is such a message.
    async fn set_feedback(
        &self,
        thread: ThreadNumber,
        message: &MessageId,
        feedback: Option<&Feedback>,
    ) -> StoreResult<bool>;

    /// Reads a thread with all its stored data, as it was at one moment, except logs and a running
    /// run.
    async fn content(&self, key: &ThreadKey) -> StoreResult<Option<ThreadContent>>;

    /// Creates a thread with its content. Writes nothing and returns `false` if the owner has a thread with this id.
    async fn insert(&self, key: &ThreadKey, content: &ThreadContent) -> StoreResult<bool>;

    /// Reads the newest attempt of a run. Here and below, `owner` is the owner of the thread: all reads share
    /// a few permits, and a read waits only for reads of its own owner.
    async fn run(
        &self,
        owner: &str,
        thread: ThreadNumber,
        id: &RunId,
    ) -> StoreResult<Option<RunRecord>>;

    /// Reads all attempts of a run, the oldest first.
    async fn attempts(
        &self,
        owner: &str,
        thread: ThreadNumber,
        id: &RunId,
    ) -> StoreResult<Vec<RunRecord>>;

    /// Reads the end of an ended run: the last message of its branch, its state, and the interrupts that no run of the
    /// thread has answered since. Returns `None` if there is no such run, or it is running.
    async fn end_state(
        &self,
        owner: &str,
        thread: ThreadNumber,
        run: EndedRun<'_>,
    ) -> StoreResult<Option<EndState>>;

    /// Reads the replies that the runs of a thread have brought, in the order of the runs.
    async fn answered(&self, owner: &str, thread: ThreadNumber) -> StoreResult<Vec<ResumeEntry>>;

    /// Reads the events of a run's log that follow the event with number `after`: none, or at least one and about
    /// `max_bytes` bytes of them. Returns `None` if there is no such run.
    async fn events(
        &self,
        owner: &str,
        run: RunNumber,
        after: u64,
        max_bytes: usize,
    ) -> StoreResult<Option<EventPage>>;

    /// Reads the next events of several runs' logs, as [`events`](Self::events) does. `after` has
    /// the number of the event before the page of each run. Runs that do not exist are left out.
    /// The `count` of a running run may only say whether there can be more events than the page
    /// has.
    ///
    /// The default reads one after the other.
    async fn events_of_runs(
        &self,
        after: &BTreeMap<RunNumber, u64>,
        max_bytes: usize,
    ) -> StoreResult<BTreeMap<RunNumber, EventPage>> {
        let mut pages = BTreeMap::new();
        for (run, after) in after {
            pages.extend(self.events("", *run, *after, max_bytes).await?.map(|page| (*run, page)));
        }
        Ok(pages)
    }

    /// Reads the input of a detached run. Returns `None` if there is no such run, if it began
    /// without a `request`, or if its log was removed.
    async fn run_start(&self, owner: &str, run: RunNumber) -> StoreResult<Option<RunStart>>;

    /// Returns the bytes of the threads and files of an owner, or of all owners: the sum of [`Thread::bytes`] and the lengths of the
    /// files.
    async fn stored_bytes(&self, owner: Option<&str>) -> StoreResult<u64>;

    /// Deletes a thread with its messages, runs and logs, even if a run is running. Returns whether it existed.
    async fn delete(&self, thread: ThreadNumber) -> StoreResult<bool>;

    /// Deletes all threads and files of an owner, including threads that are too damaged to be
    /// listed. Returns the number of threads.
    ///
    /// The default deletes the listed threads.
    async fn delete_all(&self, owner: &str) -> StoreResult<u64> {
        let mut deleted = 0;
        for thread in self.threads(owner, &ThreadPage::first(usize::MAX)).await? {
            deleted += u64::from(self.delete(thread.number).await?);
        }
        Ok(deleted)
    }

    /// Reads everything and describes each damaged row, in at most a thousand lines.
    ///
    /// The default finds none.
    async fn damaged_rows(&self) -> StoreResult<Vec<String>> {
        Ok(Vec::new())
    }

    /// Deletes the threads and logs that `retention` does not keep. Threads with a running run stay.
    async fn sweep(&self, retention: &Retention, now: Millis) -> StoreResult<SweepResult>;

    /// Lists running runs whose process is lost, the longest lost first. In a shared store these
    /// are the runs whose lease ended before `now`, otherwise all runs of other holders.
    async fn lost_runs(&self, holder: &str, now: Millis, limit: usize)
    -> StoreResult<Vec<LostRun>>;

    /// Takes over the lease of a lost run for `holder` until `until`. Returns `None` if the run is no longer lost.
    async fn take_over(
        &self,
        lost: &Lease,
        holder: &str,
        now: Millis,
        until: Millis,
    ) -> StoreResult<Option<Lease>>;

    /// Returns whether the stored data outlives this process. If so, a shutdown leaves detached
    /// runs whose agents can continue to the next process. True by default.
    fn is_durable(&self) -> bool {
        true
    }

    /// Returns the bytes of threads that the store has room for, if known: the limit of all
    /// principals' bytes unless `[retention] max_bytes_total` is set. `None` by default.
    fn capacity(&self) -> Option<u64> {
        None
    }

    /// Checks that the store can be read and written, by a small write.
    ///
    /// The default only reads.
    async fn check(&self) -> StoreResult<()> {
        self.threads("", &ThreadPage::first(1)).await.map(drop)
    }

    /// Returns the operations on files; `None` if the store keeps none. Only stores of this crate do.
    #[doc(hidden)]
    fn files(&self) -> Option<&dyn files::FileStore> {
        None
    }

    /// Returns the operations on queued runs; `None` if the store keeps none. Runs then wait for their turn in memory.
    fn queue(&self) -> Option<&dyn RunQueue> {
        None
    }

    /// Returns the operations on sealed values; `None` if the store keeps none. Only stores of this crate do.
    #[doc(hidden)]
    fn sealed_values(&self) -> Option<&dyn sealed::SealedStore> {
        None
    }

    /// Returns the operations of a store that several processes share; `None` when it belongs to this process.
    fn shared(&self) -> Option<&dyn SharedStore> {
        None
    }
}

/// A store, or an `Arc` of one: what `Server::store` takes.
pub trait IntoStore {
    /// Returns the store for several owners.
    fn into_store(self) -> Arc<dyn Store>;
}

impl<S: Store> IntoStore for S {
    fn into_store(self) -> Arc<dyn Store> {
        Arc::new(self)
    }
}

impl<S: Store> IntoStore for Arc<S> {
    fn into_store(self) -> Arc<dyn Store> {
        self
    }
}

impl IntoStore for Arc<dyn Store> {
    fn into_store(self) -> Arc<dyn Store> {
        self
    }
}

/// The time for which the signal of an append covers later appends of that run. Followers of the
/// run continue to read for longer.
#[doc(hidden)]
pub const SIGNAL_COVERS: Duration = Duration::from_millis(500);

/// The additional operations of a store that several processes share.
#[async_trait]
pub trait SharedStore: Send + Sync {
    /// Extends all leases of a holder that have not been taken over, and lists their runs.
    async fn renew(&self, holder: &str, until: Millis) -> StoreResult<Vec<LostRun>>;

    /// Notes that this process follows the running runs of these threads in the store. For at least
    /// 40 seconds it then gets [`Topic::Run`] for each append to their logs that a read after this
    /// call does not find. A signal also covers the appends of the next 500 ms.
    async fn follow(&self, threads: &[ThreadNumber]) -> StoreResult<()>;

    /// Ends a lease while its run stays running, so that the run is lost at once. Other processes get
    /// [`Topic::Leases`]. Has no effect if the lease was lost.
    async fn release(&self, lease: &Lease) -> StoreResult<()>;

    /// Asks the process that has a run's lease to cancel the run.
    async fn request_cancel(&self, thread: ThreadNumber, run: &RunId)
    -> StoreResult<CancelRequest>;

    /// Lists the numbers of a holder's runs that were asked to be cancelled.
    async fn cancel_requests(&self, holder: &str) -> StoreResult<Vec<RunNumber>>;

    /// Sends a text to the other processes, which get it as [`Signals::announcements`]. If it is lost, they get `None`.
    fn announce(&self, text: String);

    /// Returns the signals that announce changes by other processes.
    fn signals(&self) -> &Signals;
}

#[doc(hidden)]
pub mod host;

/// The example of the README, compiled by `cargo test --doc`.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
