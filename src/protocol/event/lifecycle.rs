//! Runs and steps: when they begin, and how they end.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{BaseEvent, event};
use crate::protocol::{Interrupt, PROTOCOL_VERSION, RunAgentInput, RunId, ThreadId, TokenUsage, ToolCallId, is_absent};

event! {
    run_scoped
    /// Opens a run.
    RunStarted {
        /// The conversation.
        thread_id: ThreadId,
        /// The run.
        run_id: RunId,
        /// The protocol version this stream speaks.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        protocol_version: Option<Cow<'static, str>>,
        /// The run that spawned this one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent_run_id: Option<RunId>,
        /// The request, for a client that did not make it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        input: Option<Box<RunAgentInput>>,
    }
}

event! {
    run_scoped
    /// Closes a run that did not fail.
    RunFinished {
        /// The conversation.
        thread_id: ThreadId,
        /// The run.
        run_id: RunId,
        /// What the run returned, any JSON.
        #[serde(default, skip_serializing_if = "is_absent")]
        result: Option<Value>,
        /// Why it ended; absent means success.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        outcome: Option<RunOutcome>,
        /// What its model calls cost, one entry a provider and model.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        usage: Vec<TokenUsage>,
    }
}

event! {
    run_scoped
    /// Ends a run that failed.
    RunError {
        /// What went wrong, for people.
        message: String,
        /// What went wrong, for programs.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        code: Option<Cow<'static, str>>,
        /// What its model calls had cost by then.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        usage: Vec<TokenUsage>,
    }
}

event! {
    /// Opens a step, a label over a span of the stream.
    StepStarted {
        /// The step's name, which its end repeats.
        step_name: String,
    }
}

event! {
    /// Closes a step.
    StepFinished {
        /// The step's name.
        step_name: String,
    }
}

/// Why a run ended that did not fail.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase", rename_all_fields = "camelCase")]
pub enum RunOutcome {
    /// It completed.
    Success {
        /// The tool calls it made and left to the application to answer, in order.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pending_tool_call_ids: Vec<ToolCallId>,
    },
    /// It waits for something from outside; the next run brings the answers.
    Interrupt {
        /// What it waits for; at least one.
        interrupts: Vec<Interrupt>,
    },
    /// It was stopped on purpose.
    Cancelled,
}

impl RunOutcome {
    /// A completed run that left nothing to the application.
    pub fn success() -> Self {
        Self::Success { pending_tool_call_ids: Vec::new() }
    }
}

impl RunStarted {
    /// Opens a run, in the protocol version this server speaks.
    pub fn new(thread_id: ThreadId, run_id: RunId) -> Self {
        Self {
            thread_id,
            run_id,
            protocol_version: Some(PROTOCOL_VERSION.into()),
            parent_run_id: None,
            input: None,
            base: BaseEvent::default(),
        }
    }
}

impl RunFinished {
    /// Closes a run with an outcome.
    pub fn new(thread_id: ThreadId, run_id: RunId, outcome: RunOutcome) -> Self {
        Self { thread_id, run_id, result: None, outcome: Some(outcome), usage: Vec::new(), base: BaseEvent::default() }
    }
}

impl RunError {
    /// Ends a run that failed.
    pub fn new(code: impl Into<Cow<'static, str>>, message: impl Into<String>) -> Self {
        Self { message: message.into(), code: Some(code.into()), usage: Vec::new(), base: BaseEvent::default() }
    }
}

impl StepStarted {
    /// Opens the step `name`.
    pub fn new(name: impl Into<String>) -> Self {
        Self { step_name: name.into(), subagent_run_id: None, base: BaseEvent::default() }
    }
}

impl StepFinished {
    /// Closes the step `name`.
    pub fn new(name: impl Into<String>) -> Self {
        Self { step_name: name.into(), subagent_run_id: None, base: BaseEvent::default() }
    }
}
