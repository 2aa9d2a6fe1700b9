//! The values that the guard keeps for each message, tool call and chunked item.

use super::violation::Owner;
use crate::protocol::{
    Event, MessageId, Role, ToolCallId,
    event::{ReasoningMessageEnd, TextMessageEnd, TextMessageRole, ToolCallEnd},
};

/// The fields of a message's start event. A message that is reopened must repeat them.
pub(crate) struct TextDetails {
    pub(crate) role: TextMessageRole,
    pub(crate) name: Option<String>,
}

/// The fields of a call's start event. A call that is reopened must repeat them.
pub(crate) struct CallDetails {
    pub(crate) name: String,
    pub(crate) parent: Option<MessageId>,
    pub(crate) answered: bool,
}

pub(crate) struct ImplicitMessage {
    pub(crate) role: Role,
    pub(crate) owner: Owner,
    pub(crate) name: Option<String>,
    /// True if a tool call made it. Owner and name are then unknown to clients, which take neither from the call.
    pub(crate) made_by_call: bool,
}

pub(crate) struct OwnedChunk {
    pub(crate) owner: Owner,
    pub(crate) item: ChunkedItem,
}

#[derive(Clone)]
pub(crate) enum ChunkedItem {
    Text(MessageId),
    Call(ToolCallId),
    Reasoning(MessageId),
}

#[derive(Clone, Copy, PartialEq)]
pub(crate) enum ChunkKind {
    Text,
    Call,
    Reasoning,
}

impl ChunkedItem {
    pub(crate) fn kind(&self) -> ChunkKind {
        match self {
            Self::Text(_) => ChunkKind::Text,
            Self::Call(_) => ChunkKind::Call,
            Self::Reasoning(_) => ChunkKind::Reasoning,
        }
    }

    pub(crate) fn id(&self) -> &str {
        match self {
            Self::Text(id) | Self::Reasoning(id) => id,
            Self::Call(id) => id,
        }
    }

    pub(crate) fn end(self, owner: Owner) -> Event {
        let end: Event = match self {
            Self::Text(id) => TextMessageEnd::new(id).into(),
            Self::Call(id) => ToolCallEnd::new(id).into(),
            Self::Reasoning(id) => ReasoningMessageEnd::new(id).into(),
        };
        end.attributed_to(owner)
    }
}
