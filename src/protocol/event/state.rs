//! Snapshots and changes of the state, and snapshots of the conversation.

use serde_json::Value;

use super::base::{BaseEvent, event};
use crate::protocol::{JsonPatch, Message, Messages, PatchOperation};

event! {
    /// Replaces the state.
    StateSnapshot {
        /// The new state, any JSON, also `null`.
        snapshot: Value,
    }
}

event! {
    /// Changes the state.
    StateDelta {
        /// The patch of the state, which begins as that of the run's input.
        #[schema(value_type = Vec<PatchOperation>)]
        delta: JsonPatch,
    }
}

event! {
    run_scoped
    /// Replaces the conversation. By id, clients replace known messages in place, append new ones, remove missing ones.
    MessagesSnapshot {
        /// All messages in order.
        #[schema(value_type = Vec<Message>)]
        messages: Messages,
    }
}

impl StateSnapshot {
    /// Creates the event.
    pub fn new(snapshot: impl Into<Value>) -> Self {
        Self { snapshot: snapshot.into(), subagent_run_id: None, base: BaseEvent::default() }
    }
}

impl StateDelta {
    /// Creates the event.
    pub fn new(delta: JsonPatch) -> Self {
        Self { delta, subagent_run_id: None, base: BaseEvent::default() }
    }
}

impl MessagesSnapshot {
    /// Creates the event.
    pub fn new(messages: impl Into<Messages>) -> Self {
        Self { messages: messages.into(), base: BaseEvent::default() }
    }
}
