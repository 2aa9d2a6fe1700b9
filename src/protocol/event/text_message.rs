//! Text messages: what the person reads, piece by piece.

use serde::{Deserialize, Serialize};

use super::{BaseEvent, event};
use crate::protocol::{MessageId, Role};

/// The roles a streamed text message may have.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TextMessageRole {
    /// The application's developer.
    Developer,
    /// The system.
    System,
    /// The agent; what an absent role means.
    #[default]
    Assistant,
    /// The person.
    User,
}

impl From<TextMessageRole> for Role {
    fn from(role: TextMessageRole) -> Self {
        match role {
            TextMessageRole::Developer => Self::Developer,
            TextMessageRole::System => Self::System,
            TextMessageRole::Assistant => Self::Assistant,
            TextMessageRole::User => Self::User,
        }
    }
}

event! {
    /// Opens a text message.
    TextMessageStart {
        /// The message.
        message_id: MessageId,
        /// Who it is from; absent means the assistant.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        role: Option<TextMessageRole>,
        /// A display name for the author.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
    }
}

event! {
    /// Adds to an open text message.
    TextMessageContent {
        /// The message.
        message_id: MessageId,
        /// The next piece of its text.
        delta: String,
    }
}

event! {
    /// Closes a text message.
    TextMessageEnd {
        /// The message.
        message_id: MessageId,
    }
}

event! {
    /// Opens, continues or replaces a text message in one event; the run's guard expands it.
    #[derive(Default)]
    TextMessageChunk {
        /// The message; absent continues the open one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message_id: Option<MessageId>,
        /// Who it is from, on the chunk that opens it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        role: Option<TextMessageRole>,
        /// The next piece of its text.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        delta: Option<String>,
        /// A display name for the author, on the chunk that opens it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
    }
}

impl TextMessageStart {
    /// Opens an assistant's message.
    pub fn new(message_id: impl Into<MessageId>) -> Self {
        Self {
            message_id: message_id.into(),
            role: Some(TextMessageRole::Assistant),
            name: None,
            subagent_run_id: None,
            base: BaseEvent::default(),
        }
    }
}

impl TextMessageContent {
    /// Adds `delta` to a message.
    pub fn new(message_id: impl Into<MessageId>, delta: impl Into<String>) -> Self {
        Self { message_id: message_id.into(), delta: delta.into(), subagent_run_id: None, base: BaseEvent::default() }
    }
}

impl TextMessageEnd {
    /// Closes a message.
    pub fn new(message_id: impl Into<MessageId>) -> Self {
        Self { message_id: message_id.into(), subagent_run_id: None, base: BaseEvent::default() }
    }
}
