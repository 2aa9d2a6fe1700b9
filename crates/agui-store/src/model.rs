//! Stored values as they are read: threads, messages, runs, leases, logs.

use std::{
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use smart_default::SmartDefault;
use utoipa::ToSchema;

use super::{MessageNumber, RunNumber, StateNumber, ThreadNumber};
use agui_base::time_text;
use agui_protocol::{Interrupt, Message, RunId, ThreadId, TokenUsage, event::run_error_code};

/// Milliseconds since 1970.
pub type Millis = i64;

/// Returns the time of this machine's clock.
pub fn now() -> Millis {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |time| Millis::try_from(time.as_millis()).unwrap_or(Millis::MAX))
}

/// The key of a thread: the same id of two owners is two threads.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct ThreadKey {
    /// The principal's id such as `key:web`, or [`ANONYMOUS`](Self::ANONYMOUS).
    pub owner: Arc<str>,
    /// The thread id that clients use.
    pub id: ThreadId,
}

impl ThreadKey {
    /// The owner of threads on a server without authentication. A principal's id has a colon, so it
    /// never equals this owner.
    pub const ANONYMOUS: &str = agui_base::permits::ANONYMOUS;
}

/// The right of a process to write for a running run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Lease {
    /// The thread's number.
    pub thread: ThreadNumber,
    /// The run's number.
    pub run: RunNumber,
    /// The process that runs it.
    pub holder: Arc<str>,
}

/// A version of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ThreadVersion {
    /// The thread's number.
    pub number: ThreadNumber,
    /// The number of changes so far.
    pub version: i64,
}

impl ThreadVersion {
    /// The version of a thread that was read.
    pub fn of(thread: &Thread) -> Self {
        Self { number: thread.number, version: thread.version }
    }
}

/// The size of a thread, with all its branches.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ThreadSize {
    /// The number of messages.
    pub messages: u64,
    /// The bytes of messages and states, as JSON.
    pub bytes: u64,
}

impl ThreadSize {
    pub(super) fn exceeds(self, max: Self) -> bool {
        self.messages > max.messages || self.bytes > max.bytes
    }
}

/// The parts of a thread to read.
#[derive(Debug, Clone, Copy, Default)]
pub struct ThreadParts {
    /// Reads the messages of all branches.
    pub messages: bool,
    /// Reads the current state. Without it, [`Thread::state`] is `None`.
    pub state: bool,
    /// The number of newest runs to read.
    pub runs: usize,
    /// Reads the states at the end of those runs.
    pub run_states: bool,
}

/// A thread with its messages and runs, as they were at one moment.
#[derive(Debug, Clone, PartialEq)]
pub struct ThreadView {
    /// The thread.
    pub thread: Thread,
    /// The messages of all branches in the order they were stored; empty unless requested.
    pub nodes: Vec<MessageNode>,
    /// The newest runs, the newest first, as many as requested.
    pub runs: Vec<RunRecord>,
    /// The states that those runs name, each once with its number; empty unless requested.
    pub run_states: Vec<(StateNumber, Value)>,
}

/// Returns the messages from the root to the one with number `head`. `nodes` must be in the order of their numbers.
pub fn branch_of(nodes: &[MessageNode], head: MessageNumber) -> Vec<&MessageNode> {
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
    /// Returns a thread without messages and runs.
    pub fn new(thread: Thread) -> Self {
        Self { thread, nodes: Vec::new(), runs: Vec::new(), run_states: Vec::new() }
    }

    /// Returns the messages of the current branch, from the root to the head.
    pub fn current_branch(&self) -> Vec<&Message> {
        branch_of(&self.nodes, self.thread.head).into_iter().map(|node| &node.message).collect()
    }
}

/// A thread.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Thread {
    /// Its number in the store.
    pub number: ThreadNumber,
    /// Owner and id.
    pub key: ThreadKey,
    /// The agent that answered last.
    pub agent: String,
    /// The title, given by the owner or made from the first message of a user.
    pub title: Option<String>,
    /// True if the owner has archived it.
    pub archived: bool,
    /// The owner's own data.
    pub metadata: Map<String, Value>,
    /// The number of the last message of the current branch; 0 if there is no message.
    pub head: MessageNumber,
    /// The number of the current state, and the state; `None` until a run had one.
    pub state: Option<(StateNumber, Value)>,
    /// The open interrupts of the current branch.
    pub interrupts: Vec<Interrupt>,
    /// The number of messages on all branches.
    pub messages: u64,
    /// The bytes of all messages and states, as JSON.
    pub bytes: u64,
    /// The number of changes so far.
    pub version: i64,
    /// The id of the newest run.
    pub run_id: RunId,
    /// The number of the newest run, which orders lists.
    pub run: RunNumber,
    /// The first run of the current branch, with the newest run at its end. `None` in lists, in a
    /// copied thread, and after the owner has moved the head.
    pub first_run: Option<RunNumber>,
    /// True while the newest run is running.
    pub is_running: bool,
    /// The time at which the first run began.
    pub created_at: Millis,
    /// The time at which a run last began or ended.
    pub updated_at: Millis,
}

impl Thread {
    /// Returns a thread without content, of version 0.
    pub fn new(number: ThreadNumber, key: ThreadKey, run_id: RunId) -> Self {
        Self { number, key, run_id, ..Self::default() }
    }
}

/// A message in a thread's tree.
#[derive(Debug, Clone, PartialEq)]
pub struct MessageNode {
    /// Its number within the thread.
    pub number: MessageNumber,
    /// The number of the message before it; 0 is the root.
    pub parent: MessageNumber,
    /// The client or run that stored it.
    pub origin: MessageOrigin,
    /// The message.
    pub message: Message,
    /// The owner's opinion of it.
    pub feedback: Option<Feedback>,
}

/// The source of a stored message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageOrigin {
    /// A client sent it.
    Client,
    /// A run made it.
    Run {
        /// The run's number.
        run: RunNumber,
        /// True if the response of the run reached a client to its end.
        delivered: bool,
    },
}

impl MessageOrigin {
    /// Returns the number of the run that made the message.
    pub fn run(self) -> Option<RunNumber> {
        match self {
            Self::Client => None,
            Self::Run { run, .. } => Some(run),
        }
    }
}

/// An owner's opinion of a message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Feedback {
    /// A number of the application's scale.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
    /// A text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
    /// The time at which it was given.
    #[serde(with = "time_text")]
    #[schema(value_type = String, format = DateTime)]
    pub at: Millis,
}

/// The status of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum RunStatus {
    /// It has not ended.
    #[default]
    Running,
    /// It ended successfully.
    Finished,
    /// It ended with interrupts.
    Interrupted,
    /// It was cancelled, by a client or by a time limit.
    Cancelled,
    /// It failed.
    Failed,
}

impl RunStatus {
    /// All statuses.
    pub const ALL: [Self; 5] =
        [Self::Running, Self::Finished, Self::Interrupted, Self::Cancelled, Self::Failed];

    /// Returns the name that is stored and that clients see.
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

/// Why a run ended before its agent had finished.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum EndReason {
    /// Its client left.
    Left,
    /// A person stopped it.
    Stopped,
    /// A newer request took its place.
    Superseded,
    /// It reached its time limit.
    Time,
    /// Its server was lost, or shut down.
    Lost,
}

impl EndReason {
    /// All reasons.
    pub const ALL: [Self; 5] =
        [Self::Left, Self::Stopped, Self::Superseded, Self::Time, Self::Lost];

    /// Returns the name that is stored and that clients see.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Left => "left",
            Self::Stopped => "stopped",
            Self::Superseded => "superseded",
            Self::Time => "time",
            Self::Lost => "lost",
        }
    }
}

/// One attempt of a run. In exports it has no numbers, no data about its log, and no digest.
#[derive(Debug, Clone, SmartDefault, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunRecord {
    /// Its number in the store.
    #[serde(skip)]
    pub number: RunNumber,
    /// The number of its thread.
    #[serde(skip)]
    pub thread: ThreadNumber,
    /// Its id. The attempts of a run have the same one.
    #[serde(rename = "runId")]
    pub id: RunId,
    /// The number of this attempt among those with its id in the thread, from 1.
    #[default = 1]
    #[serde(default = "first_attempt")]
    pub attempt: u32,
    /// A digest of the request, as it was given to [`begin`](super::Store::begin).
    #[serde(skip)]
    pub asked: Option<String>,
    /// True if it continues the attempt before it: it brings replies to it, or retries it.
    #[serde(default)]
    pub continues: bool,
    /// The name of its agent.
    pub agent: String,
    /// True if it continues when its client leaves; such a run has a log.
    #[serde(skip)]
    pub detached: bool,
    /// Its status.
    pub status: RunStatus,
    /// True if its response reached a client to its end.
    #[serde(default)]
    pub delivered: bool,
    /// The time at which it began.
    #[serde(with = "time_text")]
    #[schema(value_type = String, format = DateTime)]
    pub started_at: Millis,
    /// The time at which it ended.
    #[serde(with = "time_text")]
    #[schema(value_type = String, format = DateTime)]
    pub ended_at: Option<Millis>,
    /// The number of events that it sent. For a running run, the number of events in its log.
    #[serde(default)]
    pub events: u64,
    /// The tokens that its model calls used.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub usage: Vec<TokenUsage>,
    /// The failure of a failed run.
    #[serde(default, rename = "error", skip_serializing_if = "Option::is_none")]
    pub failure: Option<RunFailure>,
    /// Why it ended before its agent had finished.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_reason: Option<EndReason>,
    /// True if a call started in it that must not be repeated.
    #[serde(default)]
    pub has_unsafe_calls: bool,
    /// The number of times that another process has continued or ended the lost run.
    #[serde(skip)]
    pub takeovers: u64,
    /// The number of the state at its end. For a running run, the number of its first state.
    #[serde(skip)]
    pub state: Option<StateNumber>,
}

impl RunRecord {
    /// Returns a running run, the first attempt of its id, which has begun at the time 0.
    pub fn new(number: RunNumber, thread: ThreadNumber, id: RunId, agent: String) -> Self {
        Self { number, thread, id, agent, ..Self::default() }
    }
}

fn first_attempt() -> u32 {
    1
}

/// The failure of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RunFailure {
    /// A stable code.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = run_error_code)]
    pub code: Option<String>,
    /// The text that clients see.
    pub message: String,
}

/// Selects an ended run of a thread.
#[derive(Debug, Clone, Copy)]
pub enum EndedRun<'a> {
    /// The newest ended attempt of the run with this id.
    Id(&'a RunId),
    /// The run that ended last on the branch of this message, at this message or nearest before it.
    Branch(MessageNumber),
}

/// The state of a thread at the end of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct EndState {
    /// The id of the run.
    pub run_id: RunId,
    /// The number of the last message of the run's branch; 0 if there is no message.
    pub head: MessageNumber,
    /// The first run of its branch; `None` if the branch has a newer run, which has ended elsewhere.
    pub first_run: Option<RunNumber>,
    /// The number of its state, and the state.
    pub state: Option<(StateNumber, Value)>,
    /// The interrupts that the run raised or left open, and that no run has answered.
    pub interrupts: Vec<Interrupt>,
}

/// The input of a detached run. It is kept as long as the run's log.
#[derive(Debug, Clone, PartialEq)]
pub struct RunStart {
    /// The number of the last message of its branch; 0 if there is no message.
    pub head: MessageNumber,
    /// The state that it started from.
    pub state: Option<Value>,
    /// The rest of its input, as it was given to [`begin`](super::Store::begin).
    pub request: String,
}

/// A running run with its lease: a lost run, or a run of a holder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LostRun {
    /// The key of its thread.
    pub key: ThreadKey,
    /// Its id.
    pub run_id: RunId,
    /// Its lease.
    pub lease: Lease,
}

/// The result of a request to cancel a run.
#[allow(clippy::large_enum_variant, reason = "few are made, and none is kept")]
#[derive(Debug, Clone, PartialEq)]
pub enum CancelRequest {
    /// The request is stored for the process that has the run.
    Requested,
    /// The run had already ended.
    Ended(RunRecord),
    /// There is no such run.
    Unknown,
}
