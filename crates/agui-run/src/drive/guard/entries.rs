//! The values that the guard keeps for each message, tool call and chunked item.

use std::sync::Arc;

use super::violation::Owner;
use agui_protocol::{
    EventType, MessageId, Role,
    event::{SubagentStarted, TextMessageRole},
};

/// The fields of a message's start event. A message that is reopened must repeat them.
pub(crate) struct TextDetails {
    pub role: TextMessageRole,
    pub name: Option<String>,
}

/// The fields of a call's start event. A call that is reopened must repeat them.
pub(crate) struct CallDetails {
    pub name: String,
    pub parent: Option<MessageId>,
    pub has_result: bool,
}

pub(crate) struct ImplicitMessage {
    pub role: Role,
    pub owner: Owner,
    pub name: Option<String>,
    /// True if a tool call made the message. Clients take neither owner nor name from the call.
    pub(crate) made_by_call: bool,
}

/// A subagent that was started.
#[derive(Debug)]
pub(crate) struct StartedSubagent {
    pub started: SubagentStarted,
    pub is_active: bool,
}

/// An item that chunks have opened.
#[derive(Clone)]
pub(crate) struct ChunkedItem {
    /// The type of its chunks.
    pub kind: EventType,
    pub id: Arc<str>,
    pub owner: Owner,
}
