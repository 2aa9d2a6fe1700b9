//! The reader of requests that start a run, on all routes and of all clients.

use axum::{extract::Request, http::request::Parts};
use bytes::Bytes;

use super::{
    accept::{media_type::require_json, middleware::Caller, read_body, server_span::RequestTrace},
    client::Wishes,
    error::ApiError,
    options::HttpOptions,
    state::App,
};
use agui_agent::{
    Principal,
    host::{AgentEntry, Forwarded},
};
use agui_protocol::{RunAgentInput, decode::count_values};
use agui_run::host::{RequestSize, RunPermit, RunRequest};

/// The parts of a request for a run that do not depend on its format.
pub(crate) struct ReadRun {
    pub(crate) head: Parts,
    pub(crate) principal: Option<Principal>,
    permit: RunPermit,
}

/// `None` is the default agent.
pub(crate) fn find_agent(app: &App, name: Option<&str>) -> Result<AgentEntry, ApiError> {
    app.runs.agent(name).ok_or_else(|| match name {
        Some(name) => ApiError::unknown_agent(name, app.agents(None)),
        None => ApiError::NoDefaultAgent,
    })
}

/// Reads the body within all limits, and decodes it as [`decode_within_limits`] does.
pub(crate) async fn read_run<T>(
    app: &App,
    request: Request,
    decode: impl FnOnce(&[u8]) -> Result<(T, usize), ApiError>,
) -> Result<(ReadRun, T), ApiError> {
    let (head, body) = request.into_parts();
    require_json(&head.headers)?;
    app.runs.check_limits(caller_of(&head))?;
    let body = read_body::read(app, &head, body).await?;
    let (permit, decoded) = decode_within_limits(app, &head, body, decode).await?;
    let principal = caller_of(&head).cloned();
    Ok((ReadRun { head, principal, permit }, decoded))
}

/// Reads and decodes an export within all limits, as a request for a run.
pub(crate) async fn read_export<T>(
    app: &App,
    request: Request,
    decode: impl FnOnce(&[u8]) -> Result<(T, usize), ApiError>,
) -> Result<(RunPermit, T), ApiError> {
    let (head, body) = request.into_parts();
    app.runs.check_limits(caller_of(&head))?;
    let body = read_body::read_export(app, &head, body).await?;
    decode_within_limits(app, &head, body, decode).await
}

fn caller_of(head: &Parts) -> Option<&Principal> {
    head.extensions.get::<Caller>()?.principal.as_ref()
}

/// Reserves a permit and memory for the run, and decodes the body. `decode` also returns the number of values in open members.
async fn decode_within_limits<T>(
    app: &App,
    head: &Parts,
    body: Bytes,
    decode: impl FnOnce(&[u8]) -> Result<(T, usize), ApiError>,
) -> Result<(RunPermit, T), ApiError> {
    let principal = caller_of(head);
    let size = RequestSize { body_bytes: body.len(), values: count_values(&body)? };
    // A client that never sends its body holds no permit.
    let mut permit = app.runs.reserve(principal)?;
    let memory = app.runs.memory.request(principal, size).await?;
    let (decoded, open_values) = decode(&body)?;
    memory.decoded(open_values);
    permit.memory = Some(memory);
    Ok((permit, decoded))
}

pub(crate) fn warn_of_snake_case(members: usize) {
    tracing::warn!(
        members,
        "the client names members in snake case; AG-UI's names are in camel case"
    );
}

impl ReadRun {
    pub(crate) fn caller(&self) -> Result<&Caller, ApiError> {
        self.head.extensions.get::<Caller>().ok_or(ApiError::Internal)
    }

    /// Returns the request for a run. Refuses an agent that the caller may not use, on all routes.
    pub(crate) fn into_request(
        self,
        app: &App,
        agent: AgentEntry,
        input: RunAgentInput,
        wishes: &Wishes,
    ) -> Result<RunRequest, ApiError> {
        let forwarded = forwarded(&app.options, &self.head);
        let Self { principal, permit, .. } = self;
        app.require_allowed(&agent, principal.as_ref())?;
        Ok(RunRequest {
            principal,
            forwarded,
            on_disconnect: wishes.on_disconnect,
            regenerates: wishes.regenerates,
            ..RunRequest::new(permit, agent, input)
        })
    }
}

/// Returns the part of a request's head that agents see.
fn forwarded(options: &HttpOptions, head: &Parts) -> Forwarded {
    let headers = &head.headers;
    let named = options.pass_headers.iter().flat_map(|name| {
        headers.get_all(name).iter().filter_map(move |value| {
            match std::str::from_utf8(value.as_bytes()) {
                Ok(value) => Some((name.to_ascii_lowercase(), value.to_owned())),
                Err(_) => {
                    tracing::warn!(
                        header = name,
                        "a header for agents is not UTF-8 and was left out"
                    );
                    None
                }
            }
        })
    });
    let trace = head.extensions.get().map(|RequestTrace(trace)| trace.clone());
    Forwarded::new(named).with_trace(trace)
}
