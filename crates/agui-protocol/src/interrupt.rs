//! Interrupts, which end a run until somebody replies, and the replies in the next run.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{
    InterruptId, JsonObject, Metadata, SubagentRunId, ToolCallId, wire_struct::wire_struct,
};

const TOOL_NAME: &str = "toolName";
const ARGUMENTS: &str = "arguments";

wire_struct! {
    own_new
    /// A request for a reply that the run needs before it can continue.
    Interrupt {
        /// Unique within the run.
        id: InterruptId,
        /// The reason; any text. `tool_call` is usual for an approval.
        reason: String,
    } optional {
        /// The question to the user.
        message: String,
        /// The tool call to approve.
        tool_call_id: ToolCallId,
        /// JSON Schema of the reply, from which a front end can build a form.
        #[schema(value_type = Option<Object>)]
        response_schema: JsonObject,
        /// The time after which replies are refused; by convention ISO 8601.
        #[schema(format = DateTime)]
        expires_at: String,
        /// Further data, open by key.
        metadata: Metadata,
        /// The subagent invocation that raised it. Absent for the parent agent.
        subagent_run_id: SubagentRunId,
    }
}

impl Interrupt {
    /// Creates an interrupt with a random id.
    pub fn new(reason: impl Into<String>) -> Self {
        Self::bare(InterruptId::random(), reason)
    }

    /// Sets the call that the interrupt asks about: the tool, and the arguments that will run.
    #[doc(hidden)]
    pub fn set_call(&mut self, tool: &str, arguments: JsonObject) {
        let metadata = self.metadata.get_or_insert_default();
        metadata.insert(TOOL_NAME.to_owned(), tool.into());
        metadata.insert(ARGUMENTS.to_owned(), arguments.into());
    }

    /// Returns the arguments that will run, if the agent says them. The text that the model wrote may be read in another way.
    #[doc(hidden)]
    pub fn arguments(&self) -> Option<&JsonObject> {
        self.metadata.as_ref()?.get(ARGUMENTS)?.as_object()
    }
}

wire_struct! {
    decoded
    /// The reply to one interrupt, in the input of the next run.
    ResumeEntry {
        /// The interrupt.
        interrupt_id: InterruptId,
        /// Replied to or abandoned.
        status: ResumeStatus,
    } open {
        /// The reply, any JSON.
        payload,
    } optional {
        /// Further data, open by key.
        metadata: Metadata,
    }
}

/// The way in which an interrupt ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum ResumeStatus {
    /// The payload is the reply.
    Resolved,
    /// Abandoned.
    Cancelled,
}
