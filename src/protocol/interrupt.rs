//! Interrupts, which end a run until they are answered, and the answers in the next run.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::{InterruptId, JsonObject, Metadata, SubagentRunId, ToolCallId, is_absent};

/// A request for an answer that the run needs before it can continue.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Interrupt {
    /// Unique within the run.
    pub id: InterruptId,
    /// The reason; any text. `tool_call` is usual for an approval.
    pub reason: String,
    /// The question to the user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The tool call to approve.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<ToolCallId>,
    /// JSON Schema of the answer, from which a front end can build a form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub response_schema: Option<JsonObject>,
    /// The time after which answers are refused; by convention ISO 8601.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime)]
    pub expires_at: Option<String>,
    /// Further data, open by key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Metadata>,
    /// The subagent invocation that raised it. Absent for the parent agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subagent_run_id: Option<SubagentRunId>,
}

impl Interrupt {
    /// Creates an interrupt with a random id.
    pub fn new(reason: impl Into<String>) -> Self {
        Self {
            id: InterruptId::random(),
            reason: reason.into(),
            message: None,
            tool_call_id: None,
            response_schema: None,
            expires_at: None,
            metadata: None,
            subagent_run_id: None,
        }
    }
}

/// The answer to one interrupt, in the input of the next run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResumeEntry {
    /// The answered interrupt.
    pub interrupt_id: InterruptId,
    /// Answered or abandoned.
    pub status: ResumeStatus,
    /// The answer, any JSON.
    #[serde(default, skip_serializing_if = "is_absent")]
    pub payload: Option<Value>,
    /// Further data, open by key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Metadata>,
}

/// The way in which an interrupt ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum ResumeStatus {
    /// Answered by the payload.
    Resolved,
    /// Abandoned.
    Cancelled,
}
