//! The part of a detached run's request that is stored for its recording: what the thread does not have.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::protocol::{Context, Messages, ResumeEntry, RunAgentInput, RunId, ThreadId, ToolDefinition};
use crate::run::conversation::{
    plan::{ClientInput, Plan},
    resume::ResumeDecision,
};

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct StoredRequest<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    protocol_version: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent_run_id: Option<Cow<'a, RunId>>,
    #[serde(default, skip_serializing_if = "<[ToolDefinition]>::is_empty")]
    tools: Cow<'a, [ToolDefinition]>,
    #[serde(default, skip_serializing_if = "<[Context]>::is_empty")]
    context: Cow<'a, [Context]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    forwarded_props: Option<Cow<'a, serde_json::Value>>,
    /// The answers that the agent gets.
    #[serde(default, skip_serializing_if = "<[ResumeEntry]>::is_empty")]
    resume: Cow<'a, [ResumeEntry]>,
    /// True if the server adds a snapshot of the state after `RUN_STARTED`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) adds_state: bool,
}

impl<'a> StoredRequest<'a> {
    pub(crate) fn new(client: &'a ClientInput, plan: &'a Plan) -> Self {
        let RunAgentInput { protocol_version, parent_run_id, tools, context, forwarded_props, .. } = &client.rest;
        let resume = match &plan.resume {
            ResumeDecision::Proceed(answers) => &answers[..],
            _ => &[],
        };
        Self {
            protocol_version: protocol_version.as_deref().map(Cow::Borrowed),
            parent_run_id: parent_run_id.as_ref().map(Cow::Borrowed),
            tools: Cow::Borrowed(tools),
            context: Cow::Borrowed(context),
            forwarded_props: forwarded_props.as_ref().map(Cow::Borrowed),
            resume: Cow::Borrowed(resume),
            adds_state: plan.lacks_state(client),
        }
    }

    pub(crate) fn to_json(&self) -> String {
        // Requests always have a JSON form.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Has no limit of depth: the depth of a request was limited when it was received.
    pub(crate) fn from_json(json: &str) -> serde_json::Result<StoredRequest<'static>> {
        let mut parser = serde_json::Deserializer::from_str(json);
        parser.disable_recursion_limit();
        StoredRequest::deserialize(&mut parser)
    }

    /// Returns the agent's input, without a state.
    pub(crate) fn into_input(self, thread: ThreadId, run: RunId, messages: Messages) -> RunAgentInput {
        RunAgentInput {
            protocol_version: self.protocol_version.map(Cow::into_owned),
            parent_run_id: self.parent_run_id.map(Cow::into_owned),
            tools: self.tools.into_owned(),
            context: self.context.into_owned(),
            forwarded_props: self.forwarded_props.map(Cow::into_owned),
            resume: self.resume.into_owned(),
            ..RunAgentInput::new(thread, run, messages)
        }
    }
}
