//! `POST /send-message`, `POST /agents/{agent}/send-message`, and the agents' own paths: a request starts a run.

use std::sync::Arc;

use axum::{
    extract::{Request, State},
    http::{HeaderMap, HeaderValue, header},
    response::Response,
    routing::{MethodRouter, post},
};

use super::{
    error::ApiError,
    extract::Path,
    middleware::Caller,
    options::HttpOptions,
    read_body::{self, Limits},
    run_response::respond_run,
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
    let (head, body) = request.into_parts();
    require_json(&head.headers)?;
    let principal = head.extensions.get::<Caller>().and_then(Caller::principal);
    // The slot is taken before the body is read, so that it also limits the number of bodies in memory.
    let slot = app.runs().reserve(principal.as_ref())?;
    let options = app.options();
    let body = read_body::read(body, Limits::of(options, &head.headers)).await?;
    let Decoded { input, ignored } = decode(&body)?;
    drop(body);
    if !ignored.is_empty() {
        tracing::warn!(dropped = %ignored, "ignored members of the input that AG-UI 1.0 does not define");
    }
    check_version(&input)?;
    let accept = head.headers.get_all(header::ACCEPT);
    let mut encoder = Encoder::negotiate(accept.iter().filter_map(|value| value.to_str().ok()));
    if is_legacy_client(&input, accept.iter()) {
        encoder = encoder.for_legacy_client();
    }
    let forwarded = forwarded(options, &head.headers);
    let request = RunRequest { slot, agent, input, principal, forwarded, on_disconnect };
    Ok(respond_run(app, app.runs().start(request).await?, encoder).await)
}

pub(crate) fn forwarded(options: &HttpOptions, headers: &HeaderMap) -> Forwarded {
    let named = options.pass_headers.iter().flat_map(|name| {
        headers.get_all(name).iter().filter_map(move |value| match std::str::from_utf8(value.as_bytes()) {
            Ok(value) => Some((name.to_ascii_lowercase(), value.to_owned())),
            Err(_) => {
                tracing::warn!(header = name, "a header for agents is not UTF-8 and was left out");
                None
            }
        })
    });
    Forwarded::new(named)
}

pub(crate) fn require_json(headers: &HeaderMap) -> Result<(), ApiError> {
    let content_type = headers.get(header::CONTENT_TYPE);
    let essence = content_type.and_then(|value| value.to_str().ok()).map(|value| match value.split_once(';') {
        Some((essence, _)) => essence.trim(),
        None => value.trim(),
    });
    let json = essence.is_some_and(|essence| {
        let essence = essence.to_ascii_lowercase();
        essence == "application/json" || (essence.starts_with("application/") && essence.ends_with("+json"))
    });
    if !json {
        return Err(ApiError::not_json(content_type));
    }
    match headers.get(header::CONTENT_ENCODING) {
        Some(encoding) if encoding != "identity" => Err(ApiError::encoded_body()),
        _ => Ok(()),
    }
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
/// none. They declare no version, like requests written by hand, which should get all of AG-UI 1.0. But the SDKs always
/// send `state` and `forwardedProps`, even if empty, and an `Accept` that is exactly the stream's type.
fn is_legacy_client<'a>(input: &RunAgentInput, mut accept: impl Iterator<Item = &'a HeaderValue>) -> bool {
    input.protocol_version.is_none()
        && input.state.is_some()
        && input.forwarded_props.is_some()
        && accept.next().is_some_and(|value| value == SSE_MEDIA_TYPE)
        && accept.next().is_none()
}
