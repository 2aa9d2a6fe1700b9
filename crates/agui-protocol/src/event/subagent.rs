//! The beginning and the end of subagent invocations.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::base::event;
use crate::{InterruptId, MessageId, SubagentRunId, ToolCallId};

event! {
    run_scoped
    /// Begins an invocation. Its events carry its id.
    SubagentStarted {
        /// The invocation.
        subagent_run_id: SubagentRunId,
        /// The subagent's name.
        name: String,
    } optional {
        /// The purpose of the subagent.
        description: String,
        /// The invoking invocation; absent means the parent agent.
        parent_subagent_run_id: SubagentRunId,
        /// The tool call that invoked it, if the subagent is a tool.
        parent_tool_call_id: ToolCallId,
        /// The message with this call.
        parent_message_id: MessageId,
    }
}

event! {
    run_scoped
    /// Ends an invocation that did not fail.
    SubagentFinished {
        /// The invocation.
        subagent_run_id: SubagentRunId,
    } open {
        /// The result, any JSON.
        result,
    } optional {
        /// Absent means success.
        outcome: SubagentOutcome,
    }
}

event! {
    run_scoped
    /// Ends an invocation that failed. The run may continue.
    SubagentError {
        /// The invocation.
        subagent_run_id: SubagentRunId,
        /// The error for people.
        message: String,
    } optional {
        /// The error for programs.
        code: String,
    }
}

/// The outcome of an invocation that did not fail.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum SubagentOutcome {
    /// It completed.
    Success,
    /// It waits for replies; a later run may continue it.
    #[serde(rename_all = "camelCase")]
    Suspended {
        /// The interrupts that it raised.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        interrupt_ids: Vec<InterruptId>,
    },
}
