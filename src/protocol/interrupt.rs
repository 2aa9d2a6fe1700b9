//! What a run can wait for, and how the next run answers.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{InterruptId, JsonObject, Metadata, SubagentRunId, ToolCallId, is_absent};

/// Something a run needs from outside before it can continue.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Interrupt {
    /// Identifies the interrupt; unique within the run.
    pub id: InterruptId,
    /// Why the run stopped. An open string; `tool_call` is usual for an approval.
    pub reason: String,
    /// A prompt for the person who answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The tool call it concerns, when it is an approval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<ToolCallId>,
    /// A JSON Schema of the answer, so that a front end can build a form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_schema: Option<JsonObject>,
    /// When it stops being answerable; by convention ISO 8601.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
    /// Anything more about the interrupt, open by key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Metadata>,
    /// The subagent invocation that raised it; `None` is the parent agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subagent_run_id: Option<SubagentRunId>,
}

impl Interrupt {
    /// An interrupt with a new id and a reason.
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

/// The answer to one interrupt, sent with the run that continues.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResumeEntry {
    /// The interrupt that is answered.
    pub interrupt_id: InterruptId,
    /// Whether it was answered or abandoned.
    pub status: ResumeStatus,
    /// The answer itself, any JSON.
    #[serde(default, skip_serializing_if = "is_absent")]
    pub payload: Option<Value>,
    /// What travels with the answer without being part of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Metadata>,
}

/// Whether an interrupt was answered or abandoned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ResumeStatus {
    /// Answered; the payload is the answer.
    Resolved,
    /// Abandoned.
    Cancelled,
}
