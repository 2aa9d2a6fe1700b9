//! Reasoning: what the model thinks, and the artefacts of it that only its provider can read.

use serde::{Deserialize, Serialize};

use super::{BaseEvent, event};
use crate::protocol::MessageId;

event! {
    /// Opens a span of reasoning, which may hold several messages. Spans and messages are two namespaces.
    ReasoningStart {
        /// The span.
        message_id: MessageId,
    }
}

event! {
    /// Opens a reasoning message.
    ReasoningMessageStart {
        /// The message.
        message_id: MessageId,
        /// Always `reasoning`.
        role: ReasoningRole,
    }
}

event! {
    /// Adds to an open reasoning message.
    ReasoningMessageContent {
        /// The message.
        message_id: MessageId,
        /// The next piece of its text.
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
    /// Opens, continues or replaces a reasoning message in one event; the run's guard expands it.
    #[derive(Default)]
    ReasoningMessageChunk {
        /// The message; absent continues the open one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message_id: Option<MessageId>,
        /// The next piece of its text.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        delta: Option<String>,
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
    /// A provider's opaque reasoning artefact, which the client keeps and returns unchanged.
    ReasoningEncryptedValue {
        /// What `entity_id` names.
        subtype: EncryptedValueSubtype,
        /// The message or tool call the artefact belongs to.
        entity_id: String,
        /// The artefact.
        encrypted_value: String,
    }
}

/// What a reasoning artefact belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EncryptedValueSubtype {
    /// A tool call.
    ToolCall,
    /// A message.
    Message,
}

/// The one role a reasoning message has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ReasoningRole {
    /// Reasoning.
    #[default]
    Reasoning,
}

impl ReasoningStart {
    /// Opens a span.
    pub fn new(message_id: impl Into<MessageId>) -> Self {
        Self { message_id: message_id.into(), subagent_run_id: None, base: BaseEvent::default() }
    }
}

impl ReasoningMessageStart {
    /// Opens a message.
    pub fn new(message_id: impl Into<MessageId>) -> Self {
        Self {
            message_id: message_id.into(),
            role: ReasoningRole::Reasoning,
            subagent_run_id: None,
            base: BaseEvent::default(),
        }
    }
}

impl ReasoningMessageContent {
    /// Adds `delta` to a message.
    pub fn new(message_id: impl Into<MessageId>, delta: impl Into<String>) -> Self {
        Self { message_id: message_id.into(), delta: delta.into(), subagent_run_id: None, base: BaseEvent::default() }
    }
}

impl ReasoningMessageEnd {
    /// Closes a message.
    pub fn new(message_id: impl Into<MessageId>) -> Self {
        Self { message_id: message_id.into(), subagent_run_id: None, base: BaseEvent::default() }
    }
}

impl ReasoningEnd {
    /// Closes a span.
    pub fn new(message_id: impl Into<MessageId>) -> Self {
        Self { message_id: message_id.into(), subagent_run_id: None, base: BaseEvent::default() }
    }
}

impl ReasoningEncryptedValue {
    /// Attaches an artefact to a message or a tool call.
    pub fn new(
        subtype: EncryptedValueSubtype,
        entity_id: impl Into<String>,
        encrypted_value: impl Into<String>,
    ) -> Self {
        Self {
            subtype,
            entity_id: entity_id.into(),
            encrypted_value: encrypted_value.into(),
            subagent_run_id: None,
            base: BaseEvent::default(),
        }
    }
}
