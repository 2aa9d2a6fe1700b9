//! A thread with all its stored data except the logs of its runs, to copy it.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::{
    Feedback, MessageNode, MessageNumber, Millis, RunRecord, StateNumber, Thread, json_len,
};
use agui_base::time_text;
use agui_protocol::{Interrupt, JsonObject, Message, ResumeEntry};

/// The content of a thread. Messages, states and runs refer to each other by their positions here. This is also the format of
/// exports.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadContent {
    /// The agent that answered last.
    pub agent: String,
    /// The title, or `null`.
    #[serde(default)]
    pub title: Option<String>,
    /// True if the owner has archived it.
    #[serde(default)]
    pub archived: bool,
    /// The owner's own data.
    #[serde(default)]
    #[schema(value_type = Object)]
    pub metadata: JsonObject,
    /// The number of the last message of the current branch, which is its position plus one; 0 if
    /// there is no message.
    #[schema(value_type = i64)]
    pub head: MessageNumber,
    /// The current state, by its position in `states`, or `null`.
    #[serde(default)]
    pub state: Option<usize>,
    /// The open interrupts of the current branch.
    #[serde(default)]
    pub interrupts: Vec<Interrupt>,
    /// The messages of all branches, in the order they were stored.
    pub messages: Vec<CopiedMessage>,
    /// The states at the begin and the end of runs. At most two for each run.
    #[serde(default)]
    pub states: Vec<Value>,
    /// The runs, the oldest first. At least one; all have ended.
    #[serde(default)]
    pub runs: Vec<CopiedRun>,
    /// The time at which the first run began.
    #[serde(with = "time_text")]
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Millis,
    /// The time at which a run last began or ended.
    #[serde(with = "time_text")]
    #[schema(value_type = String, format = DateTime)]
    pub updated_at: Millis,
}

impl ThreadContent {
    /// Returns the bytes of everything that can be large: messages, feedback, states, and the details of runs, as JSON.
    pub fn bytes(&self) -> u64 {
        let of_message = |copied: &CopiedMessage| {
            json_len(&copied.message) + copied.feedback.as_ref().map_or(0, json_len)
        };
        let of_run = |run: &CopiedRun| {
            let CopiedRun { record, interrupts, answered, .. } = run;
            let details = json_len(interrupts)
                + json_len(answered)
                + json_len(&record.usage)
                + json_len(&record.failure);
            details + (record.id.len() + record.agent.len()) as u64
        };
        self.messages.iter().map(of_message).sum::<u64>()
            + self.states.iter().map(json_len).sum::<u64>()
            + self.runs.iter().map(of_run).sum::<u64>()
    }
}

/// A message of a thread's content.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct CopiedMessage {
    /// The number of the message before it, which is smaller than its own; 0 is the root.
    #[schema(value_type = i64)]
    pub parent: MessageNumber,
    /// The run that made it, by its position in `runs`; absent if a client sent it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<usize>,
    /// The message.
    pub message: Message,
    /// The owner's opinion of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub feedback: Option<Feedback>,
}

/// A run of a thread's content.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct CopiedRun {
    /// The run. Its numbers and [`detached`](RunRecord::detached) have no meaning, because logs are
    /// not copied.
    #[serde(flatten)]
    #[schema(inline)]
    pub record: RunRecord,
    /// The number of the last message of its branch.
    #[schema(value_type = i64)]
    pub head: MessageNumber,
    /// The state at its end, by its position in `states`, or `null`.
    #[serde(default)]
    pub state: Option<usize>,
    /// The interrupts that were open when it ended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub interrupts: Vec<Interrupt>,
    /// The replies that it brought, abbreviated.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub answered: Vec<ResumeEntry>,
}

/// The rows of a thread, which refer to states and runs by their numbers. All lists are in the
/// order of numbers.
pub(super) struct NumberedContent {
    pub(super) thread: Thread,
    pub(super) state: Option<StateNumber>,
    pub(super) states: Vec<(StateNumber, Value)>,
    /// The ended runs, with their states.
    pub(super) runs: Vec<(CopiedRun, Option<StateNumber>)>,
    pub(super) nodes: Vec<MessageNode>,
}

impl NumberedContent {
    pub(super) fn with_positions(self) -> ThreadContent {
        let Self { thread, state, states, runs, nodes } = self;
        let state_at = |number| states.binary_search_by_key(&number, |(number, _)| *number).ok();
        // A damaged row can name a run that does not exist.
        let run_at = |number| runs.binary_search_by_key(&number, |(run, _)| run.record.number).ok();
        let messages =
            nodes.into_iter().map(|MessageNode { parent, origin, message, feedback, .. }| {
                CopiedMessage { parent, run: origin.run().and_then(run_at), message, feedback }
            });
        let messages = messages.collect();
        let state = state.and_then(state_at);
        let runs = runs
            .into_iter()
            .map(|(run, state)| CopiedRun { state: state.and_then(state_at), ..run })
            .collect();
        ThreadContent {
            agent: thread.agent,
            title: thread.title,
            archived: thread.archived,
            metadata: thread.metadata,
            head: thread.head,
            state,
            interrupts: thread.interrupts,
            messages,
            states: states.into_iter().map(|(_, state)| state).collect(),
            runs,
            created_at: thread.created_at,
            updated_at: thread.updated_at,
        }
    }
}
