//! `POST /send-message`, `POST /agents/{agent}/send-message`, and the agents' own paths: a request starts a run, or
//! continues the stream of a detached run after its `Last-Event-ID`.

use std::sync::Arc;

use axum::{
    extract::{Request, State},
    http::{HeaderMap, HeaderValue, header, request::Parts},
    response::Response,
    routing::{MethodRouter, post},
};

use super::{
    error::ApiError,
    extract::Path,
    follow::{follow_run, last_event_id},
    media_type::{accepted, require_json},
    middleware::Caller,
    options::HttpOptions,
    read_body,
    run_response::respond_run,
    server_span::RequestTrace,
    state::App,
};
use crate::{
    encode::{Encoder, SSE_MEDIA_TYPE},
    protocol::{
        RunAgentInput, VersionSupport, classify_version,
        decode::{Decoded, decode},
    },
    run::{AgentEntry, Forwarded, OnDisconnect, RunRequest},
};

pub(super) async fn default_agent(State(app): State<App>, request: Request) -> Result<Response, ApiError> {
    run(&app, None, request).await
}

pub(super) async fn named_agent(
    State(app): State<App>,
    Path(agent): Path<String>,
    request: Request,
) -> Result<Response, ApiError> {
    run(&app, Some(&agent), request).await
}

pub(super) fn agent_of(name: Arc<str>) -> MethodRouter<App> {
    post(async move |State(app): State<App>, request: Request| run(&app, Some(&name), request).await)
}

async fn run(app: &App, name: Option<&str>, request: Request) -> Result<Response, ApiError> {
    let agent = app.runs().agent(name).ok_or_else(|| match name {
        Some(name) => ApiError::unknown_agent(name, app.runs()),
        None => ApiError::no_default_agent(),
    })?;
    run_agent(app, agent, None, request).await
}

/// `on_disconnect` is the endpoint's default.
pub(crate) async fn run_agent(
    app: &App,
    agent: AgentEntry,
    on_disconnect: Option<OnDisconnect>,
    request: Request,
) -> Result<Response, ApiError> {
    if let Some(after) = last_event_id(request.headers())? {
        return resume(app, after, request).await;
    }
    let (run, encoder) = read_run(app, agent, on_disconnect, request).await?;
    Ok(respond_run(app, app.runs().start(run).await?, encoder).await)
}

/// Reads a request for a run of an agent. Returns the run, and the encoder for its client.
pub(crate) async fn read_run(
    app: &App,
    agent: AgentEntry,
    on_disconnect: Option<OnDisconnect>,
    request: Request,
) -> Result<(RunRequest, Encoder), ApiError> {
    let (head, body) = request.into_parts();
    require_json(&head.headers)?;
    let principal = head.extensions.get::<Caller>().and_then(Caller::principal);
    app.runs().check_limits(principal.as_ref())?;
    let body = read_body::read(app, &head, body).await?;
    // A client that never sends its body holds no slot.
    let slot = app.runs().reserve(principal.as_ref())?;
    let input = decode_input(&body)?;
    drop(body);
    check_version(&input)?;
    let encoder = encoder_for(&input, &head.headers);
    let forwarded = forwarded(app.options(), &head);
    Ok((RunRequest { slot, agent, input, principal, forwarded, on_disconnect, is_answer: false }, encoder))
}

/// Continues the response to a request whose connection broke. The run is not started again: a client that has a part of
/// its events must not get those of another run.
async fn resume(app: &App, after: u64, request: Request) -> Result<Response, ApiError> {
    let (head, body) = request.into_parts();
    require_json(&head.headers)?;
    let caller = head.extensions.get::<Caller>().ok_or_else(ApiError::internal)?;
    let body = read_body::read(app, &head, body).await?;
    let input = decode_input(&body)?;
    drop(body);
    let encoder = encoder_for(&input, &head.headers);
    follow_run(app, caller, &input.thread_id, &input.run_id, after, encoder).await
}

fn decode_input(body: &[u8]) -> Result<RunAgentInput, ApiError> {
    let Decoded { input, ignored, snake_case } = decode(body)?;
    if !ignored.is_empty() {
        tracing::warn!(dropped = %ignored, "ignored members of the input that AG-UI does not define");
    }
    if snake_case > 0 {
        warn_of_snake_case(snake_case);
    }
    Ok(input)
}

pub(super) fn warn_of_snake_case(members: usize) {
    tracing::warn!(members, "the client names members in snake case; AG-UI's names are in camel case");
}

fn encoder_for(input: &RunAgentInput, headers: &HeaderMap) -> Encoder {
    let encoder = Encoder::negotiate(accepted(headers));
    match is_legacy_client(input, headers.get_all(header::ACCEPT).iter()) {
        true => encoder.for_legacy_client(),
        false => encoder,
    }
}

/// Returns what agents see of a request's head.
pub(crate) fn forwarded(options: &HttpOptions, head: &Parts) -> Forwarded {
    let headers = &head.headers;
    let named = options.pass_headers.iter().flat_map(|name| {
        headers.get_all(name).iter().filter_map(move |value| match std::str::from_utf8(value.as_bytes()) {
            Ok(value) => Some((name.to_ascii_lowercase(), value.to_owned())),
            Err(_) => {
                tracing::warn!(header = name, "a header for agents is not UTF-8 and was left out");
                None
            }
        })
    });
    let trace = head.extensions.get().map(|RequestTrace(trace)| trace.clone());
    Forwarded::new(named).with_trace(trace)
}

fn check_version(input: &RunAgentInput) -> Result<(), ApiError> {
    let Some(declared) = input.protocol_version.as_deref() else { return Ok(()) };
    match classify_version(declared) {
        VersionSupport::Supported => Ok(()),
        VersionSupport::Unrecognized => {
            let declared: String = declared.chars().take(16).collect();
            tracing::warn!(?declared, "the client uses an unknown version of AG-UI");
            Ok(())
        }
        VersionSupport::Unsupported => Err(ApiError::unsupported_version(declared)),
    }
}

/// True if the request comes from an AG-UI SDK older than 1.0. These refuse outcomes that they do not know, so they get
/// none. They declare no version, like requests written by hand, which should get all of AG-UI. But the SDKs always
/// send `forwardedProps`, even if empty, and an `Accept` that is exactly the stream's type. assistant-ui has no state.
fn is_legacy_client<'a>(input: &RunAgentInput, mut accept: impl Iterator<Item = &'a HeaderValue>) -> bool {
    input.protocol_version.is_none()
        && input.forwarded_props.is_some()
        && accept.next().is_some_and(|value| value == SSE_MEDIA_TYPE)
        && accept.next().is_none()
}
