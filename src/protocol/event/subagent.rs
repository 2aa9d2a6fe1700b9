//! Subagents: when one starts, and how its part of the run ends.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{BaseEvent, event};
use crate::protocol::{InterruptId, MessageId, SubagentRunId, ToolCallId, is_absent};

event! {
    run_scoped
    /// Announces an invocation. Everything it produces carries its id.
    SubagentStarted {
        /// The invocation.
        subagent_run_id: SubagentRunId,
        /// The subagent's name, the same for all its invocations.
        name: String,
        /// What it is for.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        description: Option<String>,
        /// The invocation that spawned it; absent means the parent agent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent_subagent_run_id: Option<SubagentRunId>,
        /// The tool call that spawned it, when the subagent is a tool.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent_tool_call_id: Option<ToolCallId>,
        /// The message that held this call.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent_message_id: Option<MessageId>,
    }
}

event! {
    run_scoped
    /// Ends an invocation's part of the run.
    SubagentFinished {
        /// The invocation.
        subagent_run_id: SubagentRunId,
        /// What it returned, any JSON.
        #[serde(default, skip_serializing_if = "is_absent")]
        result: Option<Value>,
        /// Why it ended; absent means success.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        outcome: Option<SubagentOutcome>,
    }
}

event! {
    run_scoped
    /// An invocation failed. The run may go on.
    SubagentError {
        /// The invocation.
        subagent_run_id: SubagentRunId,
        /// What went wrong, for people.
        message: String,
        /// What went wrong, for programs.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        code: Option<String>,
    }
}

/// Why a subagent's part of a run ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase", rename_all_fields = "camelCase")]
pub enum SubagentOutcome {
    /// It completed its work.
    Success,
    /// It waits for input from outside; a later run may continue it.
    Suspended {
        /// The run's interrupts that it raised itself.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        interrupt_ids: Vec<InterruptId>,
    },
}

impl SubagentStarted {
    /// Announces an invocation of the subagent `name`.
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
    /// Ends an invocation successfully.
    pub fn new(subagent_run_id: impl Into<SubagentRunId>) -> Self {
        Self { subagent_run_id: subagent_run_id.into(), result: None, outcome: None, base: BaseEvent::default() }
    }
}

impl SubagentError {
    /// Ends an invocation that failed.
    pub fn new(subagent_run_id: impl Into<SubagentRunId>, message: impl Into<String>) -> Self {
        Self {
            subagent_run_id: subagent_run_id.into(),
            message: message.into(),
            code: None,
            base: BaseEvent::default(),
        }
    }
}
