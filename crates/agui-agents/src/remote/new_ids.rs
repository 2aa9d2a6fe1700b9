//! New ids for retracted messages and calls that an endpoint sends again.

use std::collections::HashSet;

use serde_json::Value;

use agui_agent::RunContext;
use agui_protocol::JsonObject;

/// The ids of messages and calls that were retracted from clients. The endpoint sends them again.
pub(super) struct NewIds {
    retracted: HashSet<String>,
    attempt: u32,
}

impl NewIds {
    /// Returns `None` if nothing was retracted.
    pub(super) fn from_context(cx: &RunContext) -> Option<Self> {
        let continuation = cx.continuation().filter(|run| !run.retracted.is_empty())?;
        Some(Self { retracted: continuation.retracted.clone(), attempt: continuation.attempt })
    }

    /// Replaces the retracted ids in an event, a message or a call.
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
                ) if self.retracted.contains(id) => {
                    id.push_str(&format!("-{}", self.attempt));
                }
                _ => {}
            }
        }
    }
}
