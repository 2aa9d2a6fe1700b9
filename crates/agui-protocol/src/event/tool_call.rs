//! Streamed tool calls and their results.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::base::event;
use crate::{MessageContent, MessageId, ToolCallId};

event! {
    /// Opens a tool call.
    ToolCallStart {
        /// The call.
        tool_call_id: ToolCallId,
        /// The name of the tool.
        tool_call_name: String,
    } optional {
        /// The assistant message with the call.
        parent_message_id: MessageId,
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
    without_new
    /// Opens, continues or replaces a tool call in one event. The run's guard expands it.
    #[derive(Default)]
    ToolCallChunk {} optional {
        /// The call; by default the open one.
        tool_call_id: ToolCallId,
        /// The name of the tool, on the chunk that opens the call.
        tool_call_name: String,
        /// The assistant message with the call, on the chunk that opens it.
        parent_message_id: MessageId,
        /// The JSON text to append.
        delta: String,
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
    } optional {
        /// Always `tool`; may be absent.
        role: ToolRole,
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
