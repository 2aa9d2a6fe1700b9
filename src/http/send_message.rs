//! `POST /send-message`, `POST /agents/{agent}/send-message`, and the agents' own paths: a request starts a run, or
//! continues the stream of a detached run after its `Last-Event-ID`.

use std::sync::Arc;

use axum::{
    extract::{Request, State},
    response::Response,
    routing::{MethodRouter, post},
};

use super::{
    accept::{extract::Path, media_type::require_json, middleware::Caller, read_body},
    client::ClientSigns,
    client_encoder::ClientEncoder,
    connect::{RestatedThread, thread_that_is_asked_for},
    error::ApiError,
    follow::{LastEventId, follow_after},
    read_run::{find_agent, read_run, warn_of_snake_case},
    run_document::{self, DocumentReader, prefers_async, wants_document},
    run_response::respond_run,
    state::App,
};
use crate::http::openapi::{refuse, response};
use agui_agent::host::AgentEntry;
use agui_base::text::short_name;
use agui_protocol::{
    RunAgentInput,
    decode::{Decoded, decode},
    host::{VersionSupport, classify_version},
};
use agui_run::{
    OnDisconnect,
    host::{RunRequest, StartedRun},
};

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
    let ReadRequest { mut run, encoder, is_beside_thread } =
        read_input(app, agent, request).await?;
    run.default_on_disconnect = default_on_disconnect;
    if is_async {
        run.on_disconnect = Some(OnDisconnect::Continue);
    }
    if !is_document
        && !is_async
        && let Some((stored, permit)) = thread_that_is_asked_for(app, &run).await?
    {
        let RunRequest { input, principal, .. } = run;
        let restated = RestatedThread::new(input.thread_id, &stored, Some(input.run_id));
        return Ok(restated.respond(app, stored, encoder, principal, permit));
    }
    let reader = is_document.then(|| DocumentReader::for_input(&run.input));
    let later = is_async.then(|| (run.input.thread_id.clone(), run.input.run_id.clone()));
    let started = match is_beside_thread {
        true => app.runs.start_beside_thread(run)?,
        false => app.runs.start(run).await?,
    };
    Ok(match (started, later, reader) {
        (StartedRun::Detached { .. } | StartedRun::Awaited(_), Some((thread, id)), _) => {
            run_document::respond_later(thread, id)
        }
        (started, _, Some(reader)) => run_document::respond(app, started, reader, encoder),
        (started, _, None) => respond_run(app, started, encoder).await,
    })
}

/// A request for a run that was read.
pub(crate) struct ReadRequest {
    pub(crate) run: RunRequest,
    pub(crate) encoder: ClientEncoder,
    is_beside_thread: bool,
}

/// Reads a request for a run of an agent.
pub(crate) async fn read_input(
    app: &App,
    agent: AgentEntry,
    request: Request,
) -> Result<ReadRequest, ApiError> {
    let (read, input) = read_run(app, request, decode_input).await?;
    check_version(&input)?;
    let wishes = app.clients.read(&input)?;
    let signs = ClientSigns::of_run(&read.head.headers, &input, &wishes, agent.name());
    let encoder = ClientEncoder::for_client(app, read.caller()?, &signs).await;
    let run = read.into_request(app, agent, input, &wishes)?;
    Ok(ReadRequest { run, encoder, is_beside_thread: wishes.is_beside_thread })
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
    let wishes = app.clients.read(&input)?;
    let signs = ClientSigns::of_run(&head.headers, &input, &wishes, agent.name());
    let encoder = ClientEncoder::for_client(app, caller, &signs).await;
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
