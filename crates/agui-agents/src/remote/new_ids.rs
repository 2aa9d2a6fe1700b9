//! New ids for what an endpoint sends again, and what was taken back from clients.

use std::collections::HashSet;

use serde_json::Value;

use agui_agent::RunContext;
use agui_protocol::JsonObject;

/// The ids of messages and calls that were taken back from clients, and that the endpoint sends again.
pub(super) struct NewIds {
    taken_back: HashSet<String>,
    attempt: u32,
}

impl NewIds {
    pub(super) fn of(cx: &RunContext) -> Option<Self> {
        let continuation = cx.continuation().filter(|it| !it.taken_back.is_empty())?;
        Some(Self { taken_back: continuation.taken_back.clone(), attempt: continuation.attempt })
    }

    /// Replaces them in an event, a message or a call.
    pub(super) fn replace_in(&self, object: &mut JsonObject) {
        for (name, value) in object {
            match (name.as_str(), value) {
                ("messages" | "toolCalls", Value::Array(items)) => {
                    items
                        .iter_mut()
                        .filter_map(Value::as_object_mut)
                        .for_each(|item| self.replace_in(item));
                }
                (
                    "id" | "messageId" | "toolCallId" | "parentMessageId" | "parentToolCallId"
                    | "entityId",
                    Value::String(id),
                ) if self.taken_back.contains(id) => {
                    id.push_str(&format!("-{}", self.attempt));
                }
                _ => {}
            }
        }
    }
}
