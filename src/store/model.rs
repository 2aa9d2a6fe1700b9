//! What a store keeps: threads, messages and runs as they are read, and the names they have.

use std::{
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

use serde_json::Value;

use crate::protocol::{Interrupt, Message, RunId, ThreadId, TokenUsage};

/// Milliseconds since 1970.
pub type Millis = i64;

/// Returns the time by this machine's clock.
pub fn now() -> Millis {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |time| Millis::try_from(time.as_millis()).unwrap_or(Millis::MAX))
}

/// What identifies a thread: the same id of two owners is two threads.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ThreadKey {
    /// The principal's id such as `key:web`, or [`ANONYMOUS`](Self::ANONYMOUS).
    pub owner: Arc<str>,
    /// The id that clients know the thread by.
    pub id: ThreadId,
}

impl ThreadKey {
    /// The owner of threads on a server without authentication. No principal's id is equal to it: those have a colon.
    pub const ANONYMOUS: &str = "none";
}

/// The right to write for a running run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// The thread's number.
    pub thread: i64,
    /// The run's number. Each run of a thread has a higher one than the run before it.
    pub run: i64,
    /// The process that drives the run.
    pub holder: Arc<str>,
}

/// A thread at one of its versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreadVersion {
    /// The thread's number. A thread that is deleted and made again has another one.
    pub number: i64,
    /// How often its content has changed.
    pub version: i64,
}

/// How large a thread is, with all its branches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreadSize {
    /// The number of messages.
    pub messages: u64,
    /// The bytes of messages and states, as JSON.
    pub bytes: u64,
}

impl ThreadSize {
    /// Returns whether a thread of this size is too large.
    pub(super) fn exceeds(self, max: Self) -> bool {
        self.messages > max.messages || self.bytes > max.bytes
    }
}

/// Which parts of a thread are read.
#[derive(Debug, Clone, Copy, Default)]
pub struct ThreadParts {
    /// All messages of all branches.
    pub messages: bool,
    /// How many of the newest runs.
    pub runs: usize,
}

/// A thread as it was at one moment.
#[derive(Debug, Clone, PartialEq)]
pub struct ThreadView {
    /// The thread.
    pub thread: Thread,
    /// The messages of all its branches in the order they were stored, if asked for.
    pub nodes: Vec<MessageNode>,
    /// Its newest runs, the newest first.
    pub runs: Vec<RunRecord>,
}

/// Returns the messages from the root of a tree to the one with a number. `nodes` are in the order of their numbers.
pub fn branch_of(nodes: &[MessageNode], head: i64) -> Vec<&MessageNode> {
    let (mut branch, mut next) = (Vec::new(), head);
    // A parent has a smaller number than its child, so one pass from the end finds the whole branch.
    for node in nodes.iter().rev() {
        if node.number == next {
            next = node.parent;
            branch.push(node);
        }
    }
    branch.reverse();
    branch
}

impl ThreadView {
    /// Returns the messages of the current branch, from the root to the head.
    pub fn current_branch(&self) -> Vec<&Message> {
        branch_of(&self.nodes, self.thread.head).into_iter().map(|node| &node.message).collect()
    }
}

/// A thread.
#[derive(Debug, Clone, PartialEq)]
pub struct Thread {
    /// Its number in the store.
    pub number: i64,
    /// Owner and id.
    pub key: ThreadKey,
    /// The agent that answered last.
    pub agent: String,
    /// The number of the last message of the current branch; 0 when there is none.
    pub head: i64,
    /// The number of the current state, and the state; `None` until a run had one.
    pub state: Option<(i64, Value)>,
    /// The interrupts that are open on the current branch.
    pub interrupts: Vec<Interrupt>,
    /// The number of messages on all branches.
    pub messages: u64,
    /// The bytes of all messages and states, as JSON.
    pub bytes: u64,
    /// How often the content has changed.
    pub version: i64,
    /// The newest run.
    pub run_id: RunId,
    /// The number of the newest run.
    pub run: i64,
    /// Whether the newest run is running.
    pub is_running: bool,
    /// When the first run began.
    pub created_at: Millis,
    /// When a run last began or ended.
    pub updated_at: Millis,
}

/// A message in a thread's tree.
#[derive(Debug, Clone, PartialEq)]
pub struct MessageNode {
    /// Its number within the thread.
    pub number: i64,
    /// The number of the message before it; 0 is the root.
    pub parent: i64,
    /// Who stored it.
    pub origin: MessageOrigin,
    /// The message.
    pub message: Message,
}

/// Who stored a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageOrigin {
    /// A client brought it.
    Client,
    /// A run made it.
    Run {
        /// The run's number.
        run: i64,
        /// Whether the run's response reached a client to its end.
        delivered: bool,
    },
}

impl MessageOrigin {
    /// The number of the run that made the message.
    pub fn run(self) -> Option<i64> {
        match self {
            Self::Client => None,
            Self::Run { run, .. } => Some(run),
        }
    }
}

/// A thread in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadSummary {
    /// The thread's id.
    pub id: ThreadId,
    /// The agent that answered last.
    pub agent: String,
    /// The number of the newest run, which orders the list.
    pub run: i64,
    /// The run that is running.
    pub active_run: Option<RunId>,
    /// The number of interrupts that are open on the current branch.
    pub open_interrupts: u64,
    /// When the first run began.
    pub created_at: Millis,
    /// When a run last began or ended.
    pub updated_at: Millis,
}

/// Part of a list of threads.
#[derive(Debug, Clone, Default)]
pub struct ThreadPage {
    /// BeginOutcome after the thread whose newest run has this number.
    pub after: Option<i64>,
    /// The largest number of threads.
    pub limit: usize,
}

/// The status of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RunStatus {
    /// It has not ended.
    Running,
    /// It ended successfully.
    Finished,
    /// It ended with interrupts.
    Interrupted,
    /// It was stopped on purpose.
    Cancelled,
    /// It failed.
    Failed,
}

impl RunStatus {
    /// All statuses.
    pub const ALL: [Self; 5] = [Self::Running, Self::Finished, Self::Interrupted, Self::Cancelled, Self::Failed];

    /// Returns the name that is shown and stored.
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
    /// Its number in the store.
    pub number: i64,
    /// The number of its thread.
    pub thread: i64,
    /// Its id, unique within the thread.
    pub id: RunId,
    /// The agent that answers.
    pub agent: String,
    /// Whether it outlives its connection, and so has a log.
    pub detached: bool,
    /// Its status.
    pub status: RunStatus,
    /// Whether its response reached a client to its end.
    pub delivered: bool,
    /// When it began.
    pub started_at: Millis,
    /// When it ended.
    pub ended_at: Option<Millis>,
    /// The number of events it sent; of a running run, those in its log.
    pub events: u64,
    /// What its model calls cost.
    pub usage: Vec<TokenUsage>,
    /// How it failed.
    pub failure: Option<RunFailure>,
}

/// How a run failed.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct RunFailure {
    /// A stable code.
    pub code: Option<String>,
    /// What the client was told.
    pub message: String,
}

/// Names an ended run of a thread.
#[derive(Debug, Clone, Copy)]
pub enum EndedRun<'a> {
    /// The run with this id.
    Id(&'a RunId),
    /// The newest run whose branch ends with this message.
    Head(i64),
}

/// What an ended run left.
#[derive(Debug, Clone, PartialEq)]
pub struct EndState {
    /// The last message of its branch.
    pub head: i64,
    /// The number of its state, and the state.
    pub state: Option<(i64, Value)>,
    /// The interrupts that no run has answered.
    pub interrupts: Vec<Interrupt>,
}

/// A part of a run's log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventPage {
    /// The number of the first event; meaningless when there are none.
    pub first: u64,
    /// Each event as one line of JSON.
    pub events: Vec<String>,
    /// The run's status when the events were read. Once it has ended, no event follows its last one.
    pub status: RunStatus,
    /// The number of events that the run sent, or of a running run those in its log.
    pub count: u64,
}

/// A run without a process that drives it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LostRun {
    /// Its thread.
    pub key: ThreadKey,
    /// Its id.
    pub run_id: RunId,
    /// Its lease.
    pub lease: Lease,
}

/// A lease that a holder has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldLease {
    /// The run.
    pub run: LostRun,
    /// Whether the run was asked to be cancelled.
    pub cancel: bool,
}

/// The result of asking for a cancel.
#[derive(Debug, Clone, PartialEq)]
pub enum CancelRequest {
    /// The process that drives the run will see it.
    Requested,
    /// The run had ended before.
    Ended(RunRecord),
    /// There is no such run.
    Unknown,
}

/// What is kept, and for how long. `None` keeps everything.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Retention {
    /// For how many milliseconds a thread is kept after it was last changed.
    pub thread_age: Option<u64>,
    /// How many threads of each owner are kept, those with the newest runs.
    pub owner_threads: Option<u64>,
    /// How many threads are kept in all. The owner with the most loses its oldest ones first.
    pub threads: Option<u64>,
    /// For how many milliseconds the log of a run is kept after the run ended.
    pub log_age: Option<u64>,
    /// How many logs of ended runs are kept, the most recently ended ones.
    pub logs: Option<u64>,
}

/// What was removed for [`Retention`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SweepResult {
    /// The number of threads.
    pub threads: u64,
    /// The number of logs.
    pub logs: u64,
}
