//! `POST /send-message`, `POST /agents/{agent}/send-message`, and the agents' own paths: a request starts a run, or
//! continues the stream of a detached run after its `Last-Event-ID`.

use std::{num::NonZeroUsize, sync::Arc};

use axum::{
    extract::{Request, State},
    http::HeaderMap,
    response::Response,
    routing::{MethodRouter, post},
};
use serde_json::{Value, json};

use super::{
    accept::{
        extract::Path,
        media_type::{accepted, require_json},
        middleware::Caller,
        read_body,
    },
    client_encoder::ClientEncoder,
    connect::RestatedThread,
    dialects::tanstack::TanStackEncoder,
    error::ApiError,
    follow::{LastEventId, follow_after},
    read_run::{find_agent, read_run, warn_of_snake_case},
    response_budget::ResponsePermit,
    run_document::{self, DocumentReader, prefers_async, wants_document},
    run_response::respond_run,
    state::App,
};
use crate::http::openapi::{refuse, response};
use agui_agent::host::{AgentEntry, owner_of};
use agui_base::text::short_name;
use agui_protocol::{
    RunAgentInput,
    decode::{Decoded, decode},
    encode::{Encoder, SSE_MEDIA_TYPE, StreamVersion},
    host::{VersionSupport, classify_version},
};
use agui_run::{
    OnDisconnect,
    host::{RunRequest, StartedRun},
    threads::ThreadConnection,
};
use agui_store::ThreadKey;

/// Runs an agent.
#[utoipa::path(
    post,
    path = "/agents/{agent}/send-message",
    params(LastEventId),
    request_body = RunAgentInput,
    responses(response::RunResponse, response::CaughtUp, refuse::Agent, refuse::Body, refuse::Follow, refuse::Limits, refuse::Parameter, refuse::Start, refuse::Store)
)]
pub(crate) async fn run_agent(
    State(app): State<App>,
    Path(agent): Path<String>,
    request: Request,
) -> Result<Response, ApiError> {
    run(&app, Some(&agent), request).await
}

/// Runs one agent; `None` is the default agent.
pub(crate) fn agent_of(name: Option<Arc<str>>) -> MethodRouter<App> {
    post(async move |State(app): State<App>, request: Request| {
        run(&app, name.as_deref(), request).await
    })
}

async fn run(app: &App, name: Option<&str>, request: Request) -> Result<Response, ApiError> {
    let agent = find_agent(app, name)?;
    run_or_reconnect(app, agent, None, request).await
}

pub(crate) async fn run_or_reconnect(
    app: &App,
    agent: AgentEntry,
    default_on_disconnect: Option<OnDisconnect>,
    request: Request,
) -> Result<Response, ApiError> {
    let LastEventId(last) = LastEventId::read(request.headers(), request.uri())?;
    if let Some(after) = last {
        return reconnect(app, &agent, after, request).await;
    }
    let (is_document, is_async) =
        (wants_document(request.headers()), prefers_async(request.headers()));
    let (mut run, encoder) = read_input(app, agent, default_on_disconnect, request).await?;
    if is_async {
        run.on_disconnect = Some(OnDisconnect::Continue);
    }
    if !is_document
        && !is_async
        && asks_nothing(&run.input)
        && let Some((stored, permit)) = stored_thread(app, &run).await?
    {
        let RunRequest { input, principal, .. } = run;
        let restated = RestatedThread::new(input.thread_id, &stored, Some(input.run_id));
        return Ok(restated.respond(app, stored, encoder, principal, permit));
    }
    let reader = is_document.then(|| DocumentReader::for_input(&run.input));
    let later = is_async.then(|| (run.input.thread_id.clone(), run.input.run_id.clone()));
    let started = if asks_for_suggestions(&run.input) {
        app.runs.start_beside_thread(run)?
    } else {
        app.runs.start(run).await?
    };
    Ok(match (started, later, reader) {
        (StartedRun::Detached { .. } | StartedRun::Awaited(_), Some((thread, id)), _) => {
            run_document::respond_later(thread, id)
        }
        (started, _, Some(reader)) => run_document::respond(app, started, reader, encoder),
        (started, _, None) => respond_run(app, started, encoder).await,
    })
}

/// True for a request without message, reply and state: pages of some other servers ask so for a
/// stored thread.
fn asks_nothing(input: &RunAgentInput) -> bool {
    let is_empty = |value: &Option<Value>| {
        value.as_ref().is_none_or(|value| value.is_null() || *value == json!({}))
    };
    input.messages.is_empty()
        && input.resume.is_empty()
        && is_empty(&input.state)
        && is_empty(&input.forwarded_props)
}

/// Returns `None` if the thread has no messages.
async fn stored_thread(
    app: &App,
    run: &RunRequest,
) -> Result<Option<(ThreadConnection, ResponsePermit)>, ApiError> {
    let key =
        ThreadKey { owner: owner_of(run.principal.as_ref()), id: run.input.thread_id.clone() };
    let permit = app.response_permit(&key).await?;
    let connection = app.threads.connect(&key, NonZeroUsize::MIN).await?;
    let has_messages =
        connection.view.as_ref().is_some_and(|view| !view.current_branch().is_empty());
    Ok(has_messages.then_some((connection, permit)))
}

/// True for CopilotKit's request for suggestions. A runtime with a single endpoint has no route of
/// its own for it, so each one would become a thread.
fn asks_for_suggestions(input: &RunAgentInput) -> bool {
    const TOOL: &str = "copilotkitSuggest";
    let forced =
        input.forwarded_prop("toolChoice").and_then(|choice| choice.pointer("/function/name"));
    forced.is_some_and(|name| name == TOOL) && matches!(&*input.tools, [tool] if tool.name == TOOL)
}

/// Reads a request for a run of an agent. Returns the run, and the encoder for its client.
pub(crate) async fn read_input(
    app: &App,
    agent: AgentEntry,
    default_on_disconnect: Option<OnDisconnect>,
    request: Request,
) -> Result<(RunRequest, ClientEncoder), ApiError> {
    let (read, input) = read_run(app, request, decode_input).await?;
    check_version(&input)?;
    let without_subagents = without_subagents(app, &agent, &input)?;
    let encoder = read.client_encoder(app, encoder_for(&input, &read.head.headers)).await?;
    let encoder = encoder.without_subagents(without_subagents);
    Ok((RunRequest { default_on_disconnect, ..read.into_request(app, agent, input)? }, encoder))
}

/// Continues the response to a request whose connection broke. The run is not started again: a client that has a part of
/// its events must not get those of another run.
async fn reconnect(
    app: &App,
    agent: &AgentEntry,
    after: u64,
    request: Request,
) -> Result<Response, ApiError> {
    let (head, body) = request.into_parts();
    require_json(&head.headers)?;
    let caller = head.extensions.get::<Caller>().ok_or(ApiError::Internal)?;
    let body = read_body::read(app, &head, body).await?;
    let (input, _) = decode_input(&body)?;
    drop(body);
    let encoder = ClientEncoder::new(app, caller, encoder_for(&input, &head.headers)).await;
    let encoder = encoder.without_subagents(without_subagents(app, agent, &input)?);
    follow_after(app, caller, input.thread_id, &input.run_id, after, encoder).await
}

/// Returns the input, and the number of values in its open members.
fn decode_input(body: &[u8]) -> Result<(RunAgentInput, usize), ApiError> {
    let Decoded { input, ignored, snake_case, open_values } = decode(body)?;
    if !ignored.is_empty() {
        tracing::warn!(dropped = %ignored, "ignored members of the input that AG-UI does not define");
    }
    if snake_case > 0 {
        warn_of_snake_case(snake_case);
    }
    Ok((input, open_values))
}

fn encoder_for(input: &RunAgentInput, headers: &HeaderMap) -> Encoder {
    if is_tanstack(input, headers) {
        return Encoder::Dialect(Box::<TanStackEncoder>::default());
    }
    let version = match input.protocol_version.as_deref() {
        None if is_legacy_client(input, headers) => StreamVersion::Legacy,
        declared => StreamVersion::for_declared(declared),
    };
    Encoder::negotiate(accepted(headers)).for_version(version)
}

/// True if the request comes from TanStack AI's client: it repeats the run's id in a header, and declares no version.
fn is_tanstack(input: &RunAgentInput, headers: &HeaderMap) -> bool {
    input.protocol_version.is_none()
        && headers.get("x-run-id").is_some_and(|id| id == input.run_id.as_str())
}

/// Old clients end a run at an event that they do not know, and nothing in their requests tells them from newer ones.
fn without_subagents(
    app: &App,
    agent: &AgentEntry,
    input: &RunAgentInput,
) -> Result<bool, ApiError> {
    match input.forwarded_prop("subagentEvents") {
        Some(Value::Bool(has_events)) => Ok(!has_events),
        None | Some(Value::Null) => Ok(input.protocol_version.is_none()
            && app.options.without_subagents.contains(agent.name())),
        Some(_) => Err(ApiError::InvalidParameter {
            name: "forwardedProps.subagentEvents",
            expected: "true or false",
        }),
    }
}

fn check_version(input: &RunAgentInput) -> Result<(), ApiError> {
    let Some(declared) = input.protocol_version.as_deref() else { return Ok(()) };
    match classify_version(declared) {
        VersionSupport::Supported => Ok(()),
        VersionSupport::Unrecognized => {
            let declared = short_name(declared);
            tracing::warn!(?declared, "the client uses an unknown version of AG-UI");
            Ok(())
        }
        VersionSupport::Unsupported => Err(ApiError::UnsupportedVersion(short_name(declared))),
    }
}

/// True if a request that declares no version comes from an AG-UI SDK older than 1.0. These refuse outcomes that they do not
/// know, so they get none. Requests written by hand declare no version either, and should get all of AG-UI. But the SDKs always
/// send `forwardedProps`, even if empty, and accept the stream's type, or this and JSON (Dart, Kotlin). assistant-ui has no state.
fn is_legacy_client(input: &RunAgentInput, headers: &HeaderMap) -> bool {
    let mut types = accepted(headers).flat_map(|value| value.split(',')).map(str::trim).peekable();
    let is_of_sdk = |accepted: &str| [SSE_MEDIA_TYPE, "application/json"].contains(&accepted);
    input.forwarded_props.is_some()
        && accepted(headers).any(|value| value.contains(SSE_MEDIA_TYPE))
        && types.all(is_of_sdk)
}
