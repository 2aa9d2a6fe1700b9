//! What is stored.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::Value;

use crate::protocol::{Interrupt, Message, RunId, ThreadId, TokenUsage};

/// Milliseconds since 1970.
pub type Millis = i64;

/// The time by this machine's clock.
pub fn now() -> Millis {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |time| Millis::try_from(time.as_millis()).unwrap_or(Millis::MAX))
}

/// The right to write for a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// The thread that is leased.
    pub thread_id: ThreadId,
    /// Its number in the store. One that was deleted and made again has another.
    pub thread_number: i64,
    /// The run it is leased for.
    pub run_id: RunId,
    /// Tells runs of the thread apart that have had the same id: each run has a higher number than the last.
    pub run_number: i64,
    /// Tells leases of the thread apart: each has a higher token than the last.
    pub token: i64,
}

/// A run to begin.
#[derive(Debug, Clone)]
pub struct NewRun {
    /// The thread; it is made when there is none.
    pub thread_id: ThreadId,
    /// The run.
    pub run_id: RunId,
    /// Who asks; a thread is only its owner's. `None` is nobody in particular.
    pub owner: Option<String>,
    /// The agent that answers.
    pub agent: String,
    /// Whether the run outlives its connection, and so has a log.
    pub detached: bool,
    /// Names the process that drives the run.
    pub holder: String,
    /// What time it is.
    pub now: Millis,
    /// Until when the lease is taken.
    pub until: Millis,
}

/// What came of beginning a run.
#[derive(Debug)]
pub enum Begin {
    /// It has begun.
    Begun {
        /// The right to write.
        lease: Lease,
        /// The thread as it is.
        thread: Thread,
        /// Whether an ended run of the same id was replaced.
        replaced: bool,
    },
    /// The thread has a running run.
    Busy {
        /// Which.
        run: RunRecord,
        /// Its lease, when it can be taken over: nobody drives this run any more.
        lost: Option<Lease>,
    },
    /// The thread is somebody else's.
    NotYours,
}

/// What runs change about a thread.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ThreadContent {
    /// The messages, in order.
    pub messages: Vec<Message>,
    /// The shared state; `None` until a run had one.
    pub state: Option<Value>,
    /// The interrupts that wait for an answer.
    pub interrupts: Vec<Interrupt>,
}

/// A conversation.
#[derive(Debug, Clone, PartialEq)]
pub struct Thread {
    /// Identifies it.
    pub id: ThreadId,
    /// Whose it is.
    pub owner: Option<String>,
    /// The agent that answered last.
    pub agent: String,
    /// What was said.
    pub content: ThreadContent,
    /// The run that is running.
    pub active_run: Option<RunId>,
    /// How often the content was replaced.
    pub version: i64,
    /// When it began.
    pub created_at: Millis,
    /// When a run last began or ended.
    pub updated_at: Millis,
}

/// A thread in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadSummary {
    /// Identifies it.
    pub id: ThreadId,
    /// The agent that answered last.
    pub agent: String,
    /// The run that is running.
    pub active_run: Option<RunId>,
    /// How many interrupts wait for an answer.
    pub open_interrupts: u64,
    /// When it began.
    pub created_at: Millis,
    /// When a run last began or ended.
    pub updated_at: Millis,
}

/// Which part of a list of threads.
#[derive(Debug, Clone, Default)]
pub struct ThreadPage {
    /// Begin after this one: the last thread's `updated_at` and id.
    pub after: Option<(Millis, ThreadId)>,
    /// How many, at most.
    pub limit: usize,
}

/// How far a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RunStatus {
    /// It goes on.
    Running,
    /// It ended well.
    Finished,
    /// It ended with interrupts.
    Interrupted,
    /// It was stopped on purpose.
    Cancelled,
    /// It failed.
    Failed,
}

impl RunStatus {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Running, Self::Finished, Self::Interrupted, Self::Cancelled, Self::Failed];

    /// The name, as it is shown and stored.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Finished => "finished",
            Self::Interrupted => "interrupted",
            Self::Cancelled => "cancelled",
            Self::Failed => "failed",
        }
    }
}

/// A run.
#[derive(Debug, Clone, PartialEq)]
pub struct RunRecord {
    /// The thread it belongs to.
    pub thread_id: ThreadId,
    /// Identifies it within the thread.
    pub run_id: RunId,
    /// Tells runs of the thread apart that have had the same id.
    pub number: i64,
    /// The agent that answers.
    pub agent: String,
    /// Whether it outlives its connection, and so has a log.
    pub detached: bool,
    /// How far it is.
    pub status: RunStatus,
    /// When it began.
    pub started_at: Millis,
    /// When it ended.
    pub ended_at: Option<Millis>,
    /// How many events it sent; of a running run, how many are in its log.
    pub events: u64,
    /// What its model calls cost.
    pub usage: Vec<TokenUsage>,
    /// How it failed.
    pub failure: Option<RunFailure>,
}

/// How a run failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunFailure {
    /// A stable code.
    pub code: Option<String>,
    /// What the client was told.
    pub message: String,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq)]
pub struct RunEnd {
    /// Anything but [`RunStatus::Running`].
    pub status: RunStatus,
    /// When.
    pub at: Millis,
    /// How many events it sent.
    pub events: u64,
    /// What its model calls cost.
    pub usage: Vec<TokenUsage>,
    /// How it failed.
    pub failure: Option<RunFailure>,
}

/// A lease that a holder has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    /// The thread.
    pub thread_id: ThreadId,
    /// Its number in the store.
    pub thread_number: i64,
    /// The lease's token.
    pub token: i64,
    /// Whether somebody asked to cancel the run.
    pub cancel: bool,
}

/// What came of asking for a cancel.
#[derive(Debug, Clone, PartialEq)]
pub enum CancelRequest {
    /// Whoever drives the run will see it.
    Requested,
    /// The run had ended before.
    Ended(RunRecord),
    /// There is no such run.
    Unknown,
}

/// A part of a run's log.
#[derive(Debug, Clone, PartialEq)]
pub struct Events {
    /// The number of the first event; meaningless when there are none.
    pub first: u64,
    /// Each event as one line of JSON.
    pub events: Vec<String>,
    /// The run, as it was when the events were read. Once it has ended, no event follows its last.
    pub run: RunRecord,
}
