//! The beginning and the end of runs and steps.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use utoipa::{ToSchema, openapi::Ref};

use super::base::event;
use crate::{Interrupt, PROTOCOL_VERSION, RunAgentInput, RunId, ThreadId, TokenUsage, ToolCallId};

event! {
    run_scoped own_new
    /// Begins a run.
    RunStarted {
        /// The thread.
        thread_id: ThreadId,
        /// The run.
        run_id: RunId,
    } optional {
        /// The protocol version of the stream.
        protocol_version: Cow<'static, str>,
        /// The run that this one continues or was spawned by.
        parent_run_id: RunId,
        /// The request, for clients that did not make it.
        input: Box<RunAgentInput>,
    }
}

event! {
    run_scoped own_new
    /// Ends a run that did not fail.
    RunFinished {
        /// The thread.
        thread_id: ThreadId,
        /// The run.
        run_id: RunId,
    } open {
        /// The result, any JSON.
        result,
    } optional {
        /// Absent means success.
        outcome: RunOutcome,
    } defaulted {
        /// Tokens of the model calls, one entry per provider and model.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        usage: Vec<TokenUsage>,
    }
}

event! {
    run_scoped own_new
    /// Ends a run that failed.
    RunError {
        /// The error for people.
        message: String,
    } optional {
        /// The error for programs.
        #[schema(schema_with = run_error_code)]
        code: Cow<'static, str>,
    } defaulted {
        /// Tokens of the model calls until then.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        usage: Vec<TokenUsage>,
    }
}

event! {
    /// Begins a step, a named section of the run.
    StepStarted {
        /// The step's name, which its end repeats.
        step_name: String,
    }
}

event! {
    /// Ends a step.
    StepFinished {
        /// The step's name.
        step_name: String,
    }
}

/// The schema of the code of a failed run. This crate does not know the codes: the OpenAPI document
/// has them under this name.
#[doc(hidden)]
pub fn run_error_code() -> Ref {
    Ref::from_schema_name("RunErrorCode")
}

/// The outcome of a run that did not fail.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum RunOutcome {
    /// It completed.
    #[serde(rename_all = "camelCase")]
    Success {
        /// The tool calls that the application is to answer, in order.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pending_tool_call_ids: Vec<ToolCallId>,
    },
    /// It waits for replies, which the next run brings.
    Interrupt {
        /// At least one.
        interrupts: Vec<Interrupt>,
    },
    /// It was stopped on purpose.
    Cancelled,
}

impl RunOutcome {
    /// Creates the outcome of a completed run without pending tool calls.
    pub fn success() -> Self {
        Self::Success { pending_tool_call_ids: Vec::new() }
    }
}

impl RunStarted {
    /// Creates the event, with this server's protocol version.
    pub fn new(thread_id: ThreadId, run_id: RunId) -> Self {
        Self { protocol_version: Some(PROTOCOL_VERSION.into()), ..Self::bare(thread_id, run_id) }
    }
}

impl RunFinished {
    /// Creates the event.
    pub fn new(thread_id: ThreadId, run_id: RunId, outcome: RunOutcome) -> Self {
        Self { outcome: Some(outcome), ..Self::bare(thread_id, run_id) }
    }
}

impl RunError {
    /// Creates the event.
    pub fn new(code: impl Into<Cow<'static, str>>, message: impl Into<String>) -> Self {
        Self { code: Some(code.into()), ..Self::bare(message) }
    }
}
