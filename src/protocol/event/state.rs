//! State and the conversation itself: replaced by snapshots, amended by patches.

use serde_json::Value;

use super::{BaseEvent, event};
use crate::protocol::{JsonPatch, Messages};

event! {
    /// Replaces the state.
    StateSnapshot {
        /// The whole new state, any JSON, also `null`.
        snapshot: Value,
    }
}

event! {
    /// Amends the state.
    StateDelta {
        /// The patch, against the run input's state until the first snapshot replaces that.
        delta: JsonPatch,
    }
}

event! {
    run_scoped
    /// Restates the conversation. The client reconciles by id: known messages are replaced in place,
    /// new ones appended, missing ones dropped.
    MessagesSnapshot {
        /// All the messages the server owns, in order.
        messages: Messages,
    }
}

impl StateSnapshot {
    /// Replaces the state with `snapshot`.
    pub fn new(snapshot: impl Into<Value>) -> Self {
        Self { snapshot: snapshot.into(), subagent_run_id: None, base: BaseEvent::default() }
    }
}

impl StateDelta {
    /// Amends the state by `delta`.
    pub fn new(delta: JsonPatch) -> Self {
        Self { delta, subagent_run_id: None, base: BaseEvent::default() }
    }
}

impl MessagesSnapshot {
    /// Restates the conversation as `messages`.
    pub fn new(messages: impl Into<Messages>) -> Self {
        Self { messages: messages.into(), base: BaseEvent::default() }
    }
}
