//! The beginning and the end of subagent invocations.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::base::{BaseEvent, event};
use crate::protocol::{InterruptId, MessageId, SubagentRunId, ToolCallId, is_absent};

event! {
    run_scoped
    /// Begins an invocation. Its events carry its id.
    SubagentStarted {
        /// The invocation.
        subagent_run_id: SubagentRunId,
        /// The subagent's name.
        name: String,
        /// The purpose of the subagent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        description: Option<String>,
        /// The invoking invocation; absent means the parent agent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent_subagent_run_id: Option<SubagentRunId>,
        /// The tool call that invoked it, if the subagent is a tool.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent_tool_call_id: Option<ToolCallId>,
        /// The message with this call.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent_message_id: Option<MessageId>,
    }
}

event! {
    run_scoped
    /// Ends an invocation that did not fail.
    SubagentFinished {
        /// The invocation.
        subagent_run_id: SubagentRunId,
        /// The result, any JSON.
        #[serde(default, skip_serializing_if = "is_absent")]
        result: Option<Value>,
        /// Absent means success.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        outcome: Option<SubagentOutcome>,
    }
}

event! {
    run_scoped
    /// Ends an invocation that failed. The run may go on.
    SubagentError {
        /// The invocation.
        subagent_run_id: SubagentRunId,
        /// The error for people.
        message: String,
        /// The error for programs.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        code: Option<String>,
    }
}

/// The outcome of an invocation that did not fail.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum SubagentOutcome {
    /// It completed.
    Success,
    /// It waits for answers; a later run may continue it.
    #[serde(rename_all = "camelCase")]
    Suspended {
        /// The interrupts that it raised.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        interrupt_ids: Vec<InterruptId>,
    },
}

impl SubagentStarted {
    /// Creates the event.
    pub fn new(subagent_run_id: impl Into<SubagentRunId>, name: impl Into<String>) -> Self {
        Self {
            subagent_run_id: subagent_run_id.into(),
            name: name.into(),
            description: None,
            parent_subagent_run_id: None,
            parent_tool_call_id: None,
            parent_message_id: None,
            base: BaseEvent::default(),
        }
    }
}

impl SubagentFinished {
    /// Creates the event of a success.
    pub fn new(subagent_run_id: impl Into<SubagentRunId>) -> Self {
        Self { subagent_run_id: subagent_run_id.into(), result: None, outcome: None, base: BaseEvent::default() }
    }
}

impl SubagentError {
    /// Creates the event.
    pub fn new(subagent_run_id: impl Into<SubagentRunId>, message: impl Into<String>) -> Self {
        Self {
            subagent_run_id: subagent_run_id.into(),
            message: message.into(),
            code: None,
            base: BaseEvent::default(),
        }
    }
}
