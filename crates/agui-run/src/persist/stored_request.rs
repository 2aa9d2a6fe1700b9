//! The part of a detached run's request that is stored for its recording and for the server that
//! continues it: the fields that the thread does not have.

use std::{borrow::Cow, sync::Arc};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::conversation::plan::Plan;
use agui_agent::{Principal, host::Forwarded};
use agui_base::trace::TraceContext;
use agui_protocol::{
    Context, Messages, ResumeEntry, RunAgentInput, RunId, ThreadId, ToolDefinition,
};
use agui_store::RunNumber;

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
    forwarded_props: Option<Cow<'a, Value>>,
    /// The replies that the agent gets.
    #[serde(default, skip_serializing_if = "<[ResumeEntry]>::is_empty")]
    resume: Cow<'a, [ResumeEntry]>,
    /// True if the server adds a snapshot of the state after `RUN_STARTED`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) adds_state: bool,
    /// True if the client sent data that were stored as files, so that the server adds a snapshot
    /// of the messages before the terminal event.
    #[serde(rename = "hasSentData", default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) had_inline_media: bool,
    /// True if the run ends with its clients, so that no server continues it by itself.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) ends_with_clients: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    principal: Option<StoredPrincipal<'a>>,
    /// The place of the request in a trace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    traceparent: Option<String>,
    /// The messages of a queued run, and the positions of those that came without an id.
    #[serde(skip_serializing_if = "Option::is_none")]
    messages: Option<Cow<'a, Messages>>,
    #[serde(default, skip_serializing_if = "<[usize]>::is_empty")]
    anonymous: Cow<'a, [usize]>,
    /// The first run that was running when a queued run came.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) came_during: Option<RunNumber>,
    /// The state that the client of a queued run sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<Cow<'a, Value>>,
    /// The random value of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    seed: Option<String>,
}

/// The caller, without the id, which is the owner of the thread.
#[derive(Serialize, Deserialize)]
struct StoredPrincipal<'a> {
    name: Cow<'a, str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    claims: Option<Cow<'a, Map<String, Value>>>,
}

impl<'a> StoredRequest<'a> {
    pub(crate) fn new(input: &'a RunAgentInput, plan: &'a Plan, had_inline_media: bool) -> Self {
        Self {
            resume: Cow::Borrowed(plan.resume.as_deref().unwrap_or_default()),
            adds_state: plan.lacks_state(input),
            had_inline_media,
            ..Self::of_input(input)
        }
    }

    /// Returns the whole request of a run that has no place in its thread yet. `anonymous` are the positions of the messages that
    /// came without an id.
    pub(crate) fn queued(
        input: &'a RunAgentInput,
        anonymous: &'a [usize],
        had_inline_media: bool,
        came_during: Option<RunNumber>,
    ) -> Self {
        Self {
            came_during,
            resume: Cow::Borrowed(&input.resume),
            messages: Some(Cow::Borrowed(&input.messages)),
            anonymous: Cow::Borrowed(anonymous),
            state: input.state.as_ref().map(Cow::Borrowed),
            had_inline_media,
            ..Self::of_input(input)
        }
    }

    fn of_input(input: &'a RunAgentInput) -> Self {
        let RunAgentInput {
            protocol_version, parent_run_id, tools, context, forwarded_props, ..
        } = input;
        Self {
            protocol_version: protocol_version.as_deref().map(Cow::Borrowed),
            parent_run_id: parent_run_id.as_ref().map(Cow::Borrowed),
            tools: Cow::Borrowed(tools),
            context: Cow::Borrowed(context),
            forwarded_props: forwarded_props.as_ref().map(Cow::Borrowed),
            resume: Cow::default(),
            adds_state: false,
            had_inline_media: false,
            ends_with_clients: false,
            principal: None,
            messages: None,
            anonymous: Cow::default(),
            came_during: None,
            state: None,
            traceparent: None,
            seed: None,
        }
    }

    pub(crate) fn ending_with_clients(self) -> Self {
        Self { ends_with_clients: true, ..self }
    }

    /// Adds the caller, the trace and the seed for the server that continues the run.
    pub(crate) fn with_caller(
        self,
        principal: Option<&'a Principal>,
        forwarded: &Forwarded,
    ) -> Self {
        let principal = principal.map(|principal| StoredPrincipal {
            name: Cow::Borrowed(principal.name()),
            claims: principal.claims().map(Cow::Borrowed),
        });
        let traceparent = forwarded.trace().map(|trace| trace.traceparent());
        Self { principal, traceparent, seed: Some(forwarded.seed.simple().to_string()), ..self }
    }

    pub(crate) fn to_json(&self) -> String {
        // Requests always have a JSON form.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Parses a stored request of any depth: the depth was limited when the request was received.
    pub(crate) fn from_json(json: &str) -> serde_json::Result<StoredRequest<'static>> {
        let mut parser = serde_json::Deserializer::from_str(json);
        parser.disable_recursion_limit();
        StoredRequest::deserialize(&mut parser)
    }

    /// Returns the caller, whose id is the owner of the thread.
    pub(crate) fn principal(&self, owner: &Arc<str>) -> Option<Principal> {
        let stored = self.principal.as_ref()?;
        let source = owner.strip_suffix(&*stored.name)?.strip_suffix(':')?;
        let principal = Principal::new(source, &stored.name);
        Some(principal.with_claims(stored.claims.as_deref().cloned().unwrap_or_default()))
    }

    /// Returns the place of the first request in a trace, for the spans of the continued run, and
    /// the run's random value.
    pub(crate) fn forwarded(&self) -> Forwarded {
        let trace = self.traceparent.as_deref().and_then(TraceContext::from_traceparent);
        let mut forwarded = Forwarded::new([]).with_trace(trace.map(Arc::new));
        if let Some(seed) = self.seed.as_deref().and_then(|seed| Uuid::parse_str(seed).ok()) {
            forwarded.seed = seed;
        }
        forwarded
    }

    /// Returns the replies that the agent got.
    pub(crate) fn into_resume(self) -> Vec<ResumeEntry> {
        self.resume.into_owned()
    }

    /// Returns the input of a queued run, and the positions of the messages that came without an id.
    pub(crate) fn into_queued(
        mut self,
        thread: ThreadId,
        run: RunId,
    ) -> (RunAgentInput, Vec<usize>) {
        let messages = self.messages.take().map(Cow::into_owned).unwrap_or_default();
        let (state, anonymous) = (self.state.take(), std::mem::take(&mut self.anonymous));
        let input = self.into_input(thread, run, messages);
        let state = state.map(Cow::into_owned);
        (RunAgentInput { state, ..input }, anonymous.into_owned())
    }

    /// Returns the agent's input, without a state.
    pub(crate) fn into_input(
        self,
        thread: ThreadId,
        run: RunId,
        messages: Messages,
    ) -> RunAgentInput {
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
