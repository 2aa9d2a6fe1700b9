//! Streamed tool calls and their results.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::base::{BaseEvent, event};
use crate::protocol::{MessageContent, MessageId, ToolCallId};

event! {
    /// Opens a tool call.
    ToolCallStart {
        /// The call.
        tool_call_id: ToolCallId,
        /// The name of the tool.
        tool_call_name: String,
        /// The assistant message with the call.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent_message_id: Option<MessageId>,
    }
}

event! {
    /// Appends to the arguments of an open call.
    ToolCallArgs {
        /// The call.
        tool_call_id: ToolCallId,
        /// The JSON text to append.
        delta: String,
    }
}

event! {
    /// Closes a call. Its arguments are complete, but may be invalid JSON.
    ToolCallEnd {
        /// The call.
        tool_call_id: ToolCallId,
    }
}

event! {
    /// Opens, continues or replaces a tool call in one event. The run's guard expands it.
    #[derive(Default)]
    ToolCallChunk {
        /// The call; by default the open one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tool_call_id: Option<ToolCallId>,
        /// The name of the tool, on the chunk that opens the call.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tool_call_name: Option<String>,
        /// The assistant message with the call, on the chunk that opens it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent_message_id: Option<MessageId>,
        /// The JSON text to append.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        delta: Option<String>,
    }
}

event! {
    /// The result of a call, as a tool message. It does not reopen the call.
    ToolCallResult {
        /// The id of the tool message.
        message_id: MessageId,
        /// The answered call.
        tool_call_id: ToolCallId,
        /// Text or parts.
        content: MessageContent,
        /// Always `tool`; may be absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        role: Option<ToolRole>,
    }
}

/// The role of tool results.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum ToolRole {
    /// A tool.
    #[default]
    Tool,
}

impl ToolCallStart {
    /// Creates the event.
    pub fn new(tool_call_id: impl Into<ToolCallId>, name: impl Into<String>) -> Self {
        Self {
            tool_call_id: tool_call_id.into(),
            tool_call_name: name.into(),
            parent_message_id: None,
            subagent_run_id: None,
            base: BaseEvent::default(),
        }
    }
}

impl ToolCallArgs {
    /// Creates the event.
    pub fn new(tool_call_id: impl Into<ToolCallId>, delta: impl Into<String>) -> Self {
        Self {
            tool_call_id: tool_call_id.into(),
            delta: delta.into(),
            subagent_run_id: None,
            base: BaseEvent::default(),
        }
    }
}

impl ToolCallEnd {
    /// Creates the event.
    pub fn new(tool_call_id: impl Into<ToolCallId>) -> Self {
        Self { tool_call_id: tool_call_id.into(), subagent_run_id: None, base: BaseEvent::default() }
    }
}

impl ToolCallResult {
    /// Creates the event.
    pub fn new(
        message_id: impl Into<MessageId>,
        tool_call_id: impl Into<ToolCallId>,
        content: impl Into<MessageContent>,
    ) -> Self {
        Self {
            message_id: message_id.into(),
            tool_call_id: tool_call_id.into(),
            content: content.into(),
            role: None,
            subagent_run_id: None,
            base: BaseEvent::default(),
        }
    }
}
