//! A thread with everything that is stored of it except the logs of its runs, to copy it.

use serde_json::Value;

use super::{Feedback, Millis, RunRecord, ThreadKey};
use crate::protocol::{Interrupt, InterruptId, JsonObject, Message};

/// The content of a thread. Messages, states and runs refer to each other by their positions here.
#[derive(Debug, Clone, PartialEq)]
pub struct ThreadContent {
    /// The agent that answered last.
    pub agent: String,
    /// The title.
    pub title: Option<String>,
    /// True if the owner has archived it.
    pub archived: bool,
    /// The owner's own data.
    pub metadata: JsonObject,
    /// The number of the last message of the current branch, which is its position and one; 0 if there is no message.
    pub head: i64,
    /// The current state, by its position in `states`.
    pub state: Option<usize>,
    /// The open interrupts of the current branch.
    pub interrupts: Vec<Interrupt>,
    /// The messages of all branches, in the order they were stored.
    pub messages: Vec<CopiedMessage>,
    /// The states at the begin and the end of runs. At most two for each run.
    pub states: Vec<Value>,
    /// The runs, the oldest first. At least one; all have ended.
    pub runs: Vec<CopiedRun>,
    /// When the first run began.
    pub created_at: Millis,
    /// When a run last began or ended.
    pub updated_at: Millis,
}

/// A message of a [`ThreadContent`].
#[derive(Debug, Clone, PartialEq)]
pub struct CopiedMessage {
    /// The number of the message before it, which is smaller than its own; 0 is the root.
    pub parent: i64,
    /// The run that made it, by its position in [`ThreadContent::runs`]; `None` if a client sent it.
    pub run: Option<usize>,
    /// The message.
    pub message: Message,
    /// The owner's opinion of it.
    pub feedback: Option<Feedback>,
}

/// A run of a [`ThreadContent`].
#[derive(Debug, Clone, PartialEq)]
pub struct CopiedRun {
    /// The run. Its numbers have no meaning, and neither has [`detached`](RunRecord::detached): logs are not copied.
    pub record: RunRecord,
    /// The number of the last message of its branch.
    pub head: i64,
    /// The state at its end, by its position in [`ThreadContent::states`].
    pub state: Option<usize>,
    /// The interrupts that were open when it ended.
    pub interrupts: Vec<Interrupt>,
    /// The interrupts that it answered.
    pub answered: Vec<InterruptId>,
}

/// A thread to create with its content.
#[derive(Debug, Clone, Copy)]
pub struct NewThread<'a> {
    /// Owner and id.
    pub key: &'a ThreadKey,
    /// The content.
    pub content: &'a ThreadContent,
}
