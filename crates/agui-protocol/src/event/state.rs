//! Snapshots and changes of the state, and snapshots of the conversation.

use serde_json::Value;

use super::base::event;
use crate::{JsonPatch, Message, Messages, PatchOperation};

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
