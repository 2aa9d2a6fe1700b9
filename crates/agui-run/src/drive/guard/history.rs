//! Messages and tool calls from before the run. Ids are unique within a thread: an event must not reuse one of theirs.

use std::collections::HashMap;

use super::violation::Owner;
use agui_protocol::{Message, Messages, ToolCallId};

#[derive(Default)]
pub(crate) struct History {
    messages: Messages,
    snapshot_calls: HashMap<ToolCallId, Owner>,
}

impl History {
    pub(super) fn of(messages: &Messages) -> Self {
        Self { messages: messages.clone(), snapshot_calls: HashMap::new() }
    }

    pub(super) fn message(&self, id: &str) -> Option<&Message> {
        self.messages.position(id).map(|position| &self.messages[position])
    }

    /// Returns the owner of an earlier call: `Some(None)` is the parent agent, `None` an unknown call.
    pub(crate) fn call_owner(&self, id: &str) -> Option<Owner> {
        self.snapshot_calls.get(id).cloned().or_else(|| {
            let position = self.messages.call_position(id)?;
            Some(self.messages[position].subagent_run_id().cloned())
        })
    }

    pub(super) fn set_call(&mut self, id: ToolCallId, owner: Owner) {
        self.snapshot_calls.insert(id, owner);
    }
}
