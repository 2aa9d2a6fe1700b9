//! The values that the guard keeps for each message, tool call and chunked item, also for those from before the run, and
//! the error of an illegal event.

use std::{borrow::Cow, collections::HashMap};

use crate::protocol::{
    Event, EventType, Message, MessageId, Messages, Role, SubagentRunId, ToolCallId,
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

#[derive(Default)]
pub(crate) struct History {
    messages: Messages,
    snapshot_calls: HashMap<ToolCallId, Owner>,
}

impl History {
    pub(crate) fn of(messages: &Messages) -> Self {
        Self { messages: messages.clone(), snapshot_calls: HashMap::new() }
    }

    pub(crate) fn message(&self, id: &str) -> Option<&Message> {
        self.messages.position(id).map(|position| &self.messages[position])
    }

    /// Returns the owner of an earlier call: `Some(None)` is the parent agent, `None` an unknown call.
    pub(crate) fn call_owner(&self, id: &str) -> Option<Owner> {
        self.snapshot_calls.get(id).cloned().or_else(|| {
            let position = self.messages.call_position(id)?;
            Some(self.messages[position].subagent_run_id().cloned())
        })
    }

    pub(crate) fn set_call(&mut self, id: ToolCallId, owner: Owner) {
        self.snapshot_calls.insert(id, owner);
    }
}

/// The owner of an item: a subagent, or `None` for the parent agent.
pub(crate) type Owner = Option<SubagentRunId>;

/// An event that is illegal at this point of the stream.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}: {problem}", .event.as_str())]
pub struct Violation {
    event: EventType,
    problem: Cow<'static, str>,
}

impl Violation {
    pub(crate) fn new(event: EventType, problem: impl Into<Cow<'static, str>>) -> Self {
        Self { event, problem: problem.into() }
    }

    /// Returns the type of the illegal event.
    pub fn event(&self) -> EventType {
        self.event
    }
}
