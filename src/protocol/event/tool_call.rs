//! Tool calls: what the agent asks to be done, and what came of it.

use serde::{Deserialize, Serialize};

use super::{BaseEvent, event};
use crate::protocol::{MessageContent, MessageId, ToolCallId};

event! {
    /// Opens a tool call.
    ToolCallStart {
        /// The call.
        tool_call_id: ToolCallId,
        /// Which tool is called.
        tool_call_name: String,
        /// The assistant message that holds the call.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent_message_id: Option<MessageId>,
    }
}

event! {
    /// Adds to an open call's arguments.
    ToolCallArgs {
        /// The call.
        tool_call_id: ToolCallId,
        /// The next piece of the arguments' JSON text.
        delta: String,
    }
}

event! {
    /// Closes a call: its arguments are complete, which is not to say that they parse.
    ToolCallEnd {
        /// The call.
        tool_call_id: ToolCallId,
    }
}

event! {
    /// Opens, continues or replaces a tool call in one event; the run's guard expands it.
    #[derive(Default)]
    ToolCallChunk {
        /// The call; absent continues the open one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tool_call_id: Option<ToolCallId>,
        /// Which tool is called, on the chunk that opens the call.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tool_call_name: Option<String>,
        /// The assistant message that holds the call, on the chunk that opens it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent_message_id: Option<MessageId>,
        /// The next piece of the arguments' JSON text.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        delta: Option<String>,
    }
}

event! {
    /// What a tool returned: a message of its own, which does not reopen the call.
    ToolCallResult {
        /// The tool message this becomes.
        message_id: MessageId,
        /// The call that is answered.
        tool_call_id: ToolCallId,
        /// Text, or an ordered list of parts.
        content: MessageContent,
        /// Always `tool`; may be left out.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        role: Option<ToolRole>,
    }
}

/// The one role a tool result has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ToolRole {
    /// A tool.
    #[default]
    Tool,
}

impl ToolCallStart {
    /// Opens a call of the tool `name`.
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
    /// Adds `delta` to a call's arguments.
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
    /// Closes a call.
    pub fn new(tool_call_id: impl Into<ToolCallId>) -> Self {
        Self { tool_call_id: tool_call_id.into(), subagent_run_id: None, base: BaseEvent::default() }
    }
}

impl ToolCallResult {
    /// Answers a call.
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
