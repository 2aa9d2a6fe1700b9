//! What the guard remembers of messages and tool calls.

use super::violation::Owner;
use crate::protocol::{
    Event, MessageId, Role, ToolCallId,
    event::{ReasoningMessageEnd, TextMessageEnd, TextMessageRole, ToolCallEnd},
};

/// What the start of a message said, which a reopening has to repeat.
pub(super) struct Text {
    pub(super) role: TextMessageRole,
    pub(super) name: Option<String>,
}

/// What the start of a call said, which a reopening has to repeat.
pub(super) struct Call {
    pub(super) name: String,
    pub(super) parent: Option<MessageId>,
    pub(super) answered: bool,
}

/// A message that exists without having been streamed.
pub(super) struct Implicit {
    pub(super) role: Role,
    pub(super) owner: Owner,
    pub(super) name: Option<String>,
    /// Whether it was made to hold a tool call. Its owner and its name are open then: the client takes neither from
    /// the call.
    pub(super) by_call: bool,
}

/// What an owner is assembling from chunks.
pub(super) struct Lane {
    pub(super) owner: Owner,
    pub(super) item: Chunked,
}

#[derive(Clone)]
pub(super) enum Chunked {
    Text(MessageId),
    Call(ToolCallId),
    Thought(MessageId),
}

#[derive(Clone, Copy, PartialEq)]
pub(super) enum ChunkKind {
    Text,
    Call,
    Thought,
}

impl Chunked {
    pub(super) fn kind(&self) -> ChunkKind {
        match self {
            Self::Text(_) => ChunkKind::Text,
            Self::Call(_) => ChunkKind::Call,
            Self::Thought(_) => ChunkKind::Thought,
        }
    }

    pub(super) fn id(&self) -> &str {
        match self {
            Self::Text(id) | Self::Thought(id) => id,
            Self::Call(id) => id,
        }
    }

    pub(super) fn end(self, owner: Owner) -> Event {
        let end: Event = match self {
            Self::Text(id) => TextMessageEnd::new(id).into(),
            Self::Call(id) => ToolCallEnd::new(id).into(),
            Self::Thought(id) => ReasoningMessageEnd::new(id).into(),
        };
        end.attributed_to(owner)
    }
}
