//! `POST /threads/{thread}/connect`: snapshots of a thread, then its running run from its first event to its last.
//! Without a running run, the stream ends with the thread's open interrupts, or successfully.

use axum::{
    Extension,
    body::Body,
    extract::{Request, State},
    response::Response,
};
use serde::Deserialize;
use utoipa::ToSchema;

use super::{
    ApiError, ApiResult, App, Caller, ClientEncoder, Path, accepted, follow::FollowedRun, read_body,
    read_run::warn_of_snake_case, refuse, response, response_budget::ResponsePermit, sse_response,
};
use crate::{
    auth::Principal,
    protocol::{
        Event, Messages, RunId, ThreadId,
        encode::{Encoder, StreamVersion},
        event::{MessagesSnapshot, RunFinished, RunOutcome, RunStarted, StateSnapshot},
    },
    store::ThreadView,
    threads::ThreadConnection,
};

/// The part of a `RunAgentInput` that is read: the id of the run in the events, and the client's version.
#[derive(Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ConnectInput {
    run_id: Option<RunId>,
    #[serde(rename = "run_id")]
    #[schema(ignore)]
    run_id_in_snake_case: Option<RunId>,
    protocol_version: Option<String>,
}

/// This stream skips the run's first event, because it has sent its own.
const RUN_STARTED_NUMBER: u64 = 1;

/// Streams a thread and its running run.
///
/// Snapshots of messages and state come first, then the running detached run from its first event. An unknown
/// thread is treated as an empty one.
#[utoipa::path(
    post,
    path = "/threads/{thread}/connect",
    request_body(content = ConnectInput, description = "May be absent."),
    responses(response::EventResponse, refuse::ResponseMemory, refuse::Body, refuse::Store, refuse::Followers)
)]
pub(crate) async fn connect_thread(
    State(app): State<App>,
    Path(thread): Path<ThreadId>,
    Extension(caller): Extension<Caller>,
    request: Request,
) -> ApiResult {
    let threads = app.threads().ok_or(ApiError::Internal)?;
    let (head, body) = request.into_parts();
    let body = read_body::read(&app, &head, body).await?;
    let input: ConnectInput = read_body::decode_optional(&body)?;
    drop(body);
    if input.run_id.is_none() && input.run_id_in_snake_case.is_some() {
        warn_of_snake_case(1);
    }
    let run_id = input.run_id.or(input.run_id_in_snake_case);
    let version = StreamVersion::for_declared(input.protocol_version.as_deref());
    let encoder = Encoder::negotiate(accepted(&head.headers)).for_version(version);
    let encoder = ClientEncoder::new(&app, &caller, encoder).await;
    let caller = caller.principal();
    let permit = app.response_permit(caller.as_ref(), &thread).await?;
    let connection = threads.connect(caller.as_ref(), &thread).await?;
    Ok(respond_with_thread(&app, thread, connection, run_id, encoder, caller, permit))
}

/// An unknown thread is treated as an empty one.
pub(crate) fn respond_with_thread(
    app: &App,
    thread_id: ThreadId,
    connection: ThreadConnection,
    run_id: Option<RunId>,
    mut encoder: ClientEncoder,
    caller: Option<Principal>,
    permit: ResponsePermit,
) -> Response {
    let ThreadConnection { view, running } = connection;
    let run_id = running.as_ref().map(|follower| follower.run_id.clone()).or(run_id).unwrap_or_else(RunId::random);
    let mut events = snapshots(&thread_id, &run_id, view.as_ref());
    if let Some(follower) = running {
        let (threads, after_first) = (app.threads().cloned(), Vec::new());
        return FollowedRun {
            threads,
            before: events,
            permit,
            skip: RUN_STARTED_NUMBER,
            after_first,
            follower,
            caller,
        }
        .respond(encoder, app.options().keep_alive);
    }
    let interrupts = view.map(|view| view.thread.interrupts).unwrap_or_default();
    let outcome = if interrupts.is_empty() { RunOutcome::success() } else { RunOutcome::Interrupt { interrupts } };
    events.push(RunFinished::new(thread_id, run_id, outcome).into());
    let mut out = Vec::new();
    events.iter().for_each(|event| encoder.event(event, &mut out));
    sse_response::respond(encoder.media_type(), Body::from(permit.bytes(out)))
}

pub(crate) fn snapshots(thread_id: &ThreadId, run_id: &RunId, view: Option<&ThreadView>) -> Vec<Event> {
    let messages = view.map(ThreadView::current_branch).unwrap_or_default();
    let state =
        view.and_then(|view| view.thread.state.clone()).map_or_else(|| serde_json::json!({}), |(_, state)| state);
    vec![
        RunStarted::new(thread_id.clone(), run_id.clone()).into(),
        MessagesSnapshot::new(messages.into_iter().cloned().collect::<Messages>()).into(),
        StateSnapshot::new(state).into(),
    ]
}
