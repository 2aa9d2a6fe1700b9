//! The input as a whole, and its parts beside the messages.

use super::{
    object::{Members, objects, read_object},
    path::JsonPath,
};
use crate::protocol::{Context, ResumeEntry, RunAgentInput, ToolDefinition};

objects! {
    RunAgentInput {
        required thread_id = "threadId",
        required run_id = "runId",
        optional protocol_version = "protocolVersion",
        optional parent_run_id = "parentRunId",
        optional state = "state",
        required messages = "messages",
        defaulted tools = "tools",
        defaulted context = "context",
        optional forwarded_props = "forwardedProps",
        defaulted resume = "resume",
    }
    ToolDefinition {
        required name = "name",
        required description = "description",
        optional parameters = "parameters",
        optional metadata = "metadata",
    }
    Context {
        required description = "description",
        required value = "value",
    }
    ResumeEntry {
        required interrupt_id = "interruptId",
        required status = "status",
        optional payload = "payload",
        optional metadata = "metadata",
    }
}
