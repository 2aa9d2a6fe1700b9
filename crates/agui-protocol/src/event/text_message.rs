//! Streamed text messages.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::base::event;
use crate::{MessageId, Role};

/// The roles of streamed text messages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum TextMessageRole {
    /// The application's developer.
    Developer,
    /// The system.
    System,
    /// The agent, also if the role is absent.
    #[default]
    Assistant,
    /// The user.
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
    own_new
    /// Opens a text message.
    TextMessageStart {
        /// The message.
        message_id: MessageId,
    } optional {
        /// Absent means the assistant.
        role: TextMessageRole,
        /// A display name for the author.
        name: String,
    }
}

event! {
    /// Appends text to an open message.
    TextMessageContent {
        /// The message.
        message_id: MessageId,
        /// The text to append.
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
    without_new
    /// Opens, continues or replaces a text message in one event. The run's guard expands it.
    #[derive(Default)]
    TextMessageChunk {} optional {
        /// The message; by default the open one.
        message_id: MessageId,
        /// The role, on the chunk that opens the message.
        role: TextMessageRole,
        /// The text to append.
        delta: String,
        /// A display name for the author, on the chunk that opens the message.
        name: String,
    }
}

impl TextMessageStart {
    /// Creates the event for a message of the assistant.
    pub fn new(message_id: impl Into<MessageId>) -> Self {
        Self { role: Some(TextMessageRole::Assistant), ..Self::bare(message_id) }
    }
}
