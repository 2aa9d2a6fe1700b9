//! Reasoning of the model, and its encrypted form that only the provider can read.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::base::event;
use crate::MessageId;

event! {
    /// Opens a span of reasoning with any number of messages. A span and a message may have the same id.
    ReasoningStart {
        /// The span.
        message_id: MessageId,
    }
}

event! {
    own_new
    /// Opens a reasoning message.
    ReasoningMessageStart {
        /// The message.
        message_id: MessageId,
        /// Always `reasoning`.
        role: ReasoningRole,
    }
}

event! {
    /// Appends text to an open reasoning message.
    ReasoningMessageContent {
        /// The message.
        message_id: MessageId,
        /// The text to append.
        delta: String,
    }
}

event! {
    /// Closes a reasoning message.
    ReasoningMessageEnd {
        /// The message.
        message_id: MessageId,
    }
}

event! {
    without_new
    /// Opens, continues or replaces a reasoning message in one event. The run's guard expands it.
    #[derive(Default)]
    ReasoningMessageChunk {} optional {
        /// The message; by default the open one.
        message_id: MessageId,
        /// The text to append.
        delta: String,
    }
}

event! {
    /// Closes a span of reasoning.
    ReasoningEnd {
        /// The span.
        message_id: MessageId,
    }
}

event! {
    /// Encrypted reasoning of the provider, which the client sends back unchanged.
    ReasoningEncryptedValue {
        /// The type of `entity_id`.
        subtype: EncryptedValueSubtype,
        /// The message or tool call that it belongs to.
        entity_id: String,
        /// The encrypted value.
        encrypted_value: String,
    } optional {
        /// The provider's name for the kind of value, such as `anthropic.signature`.
        encrypted_value_type: String,
    }
}

/// The type of item that an encrypted value belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EncryptedValueSubtype {
    /// A tool call.
    ToolCall,
    /// A message.
    Message,
}

/// The role of reasoning messages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum ReasoningRole {
    /// Reasoning.
    #[default]
    Reasoning,
}

impl ReasoningMessageStart {
    /// Creates the event.
    pub fn new(message_id: impl Into<MessageId>) -> Self {
        Self::bare(message_id, ReasoningRole::Reasoning)
    }
}

impl ReasoningEncryptedValue {
    /// Sets the type of the value.
    #[must_use]
    pub fn with_type(mut self, encrypted_value_type: impl Into<String>) -> Self {
        self.encrypted_value_type = Some(encrypted_value_type.into());
        self
    }
}
