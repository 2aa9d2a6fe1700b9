//! The values that the guard keeps for each message, tool call and chunked item.

use super::violation::Owner;
use crate::protocol::{
    Event, MessageId, Role, ToolCallId,
    event::{ReasoningMessageEnd, TextMessageEnd, TextMessageRole, ToolCallEnd},
};

/// The fields of a message's start event. A message that is reopened must repeat them.
pub(super) struct TextDetails {
    pub(super) role: TextMessageRole,
    pub(super) name: Option<String>,
}

/// The fields of a call's start event. A call that is reopened must repeat them.
pub(super) struct CallDetails {
    pub(super) name: String,
    pub(super) parent: Option<MessageId>,
    pub(super) answered: bool,
}

pub(super) struct ImplicitMessage {
    pub(super) role: Role,
    pub(super) owner: Owner,
    pub(super) name: Option<String>,
    /// True if a tool call made it. Owner and name are then unknown to clients, which take neither from the call.
    pub(super) made_by_call: bool,
}

pub(super) struct OwnedChunk {
    pub(super) owner: Owner,
    pub(super) item: ChunkedItem,
}

#[derive(Clone)]
pub(super) enum ChunkedItem {
    Text(MessageId),
    Call(ToolCallId),
    Reasoning(MessageId),
}

#[derive(Clone, Copy, PartialEq)]
pub(super) enum ChunkKind {
    Text,
    Call,
    Reasoning,
}

impl ChunkedItem {
    pub(super) fn kind(&self) -> ChunkKind {
        match self {
            Self::Text(_) => ChunkKind::Text,
            Self::Call(_) => ChunkKind::Call,
            Self::Reasoning(_) => ChunkKind::Reasoning,
        }
    }

    pub(super) fn id(&self) -> &str {
        match self {
            Self::Text(id) | Self::Reasoning(id) => id,
            Self::Call(id) => id,
        }
    }

    pub(super) fn end(self, owner: Owner) -> Event {
        let end: Event = match self {
            Self::Text(id) => TextMessageEnd::new(id).into(),
            Self::Call(id) => ToolCallEnd::new(id).into(),
            Self::Reasoning(id) => ReasoningMessageEnd::new(id).into(),
        };
        end.attributed_to(owner)
    }
}
