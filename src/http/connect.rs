//! `POST /threads/{thread}/connect`: a thread, for a client that comes back to it.
//!
//! A stream that any AG-UI client understands: the thread restated as snapshots, then the running run from its first
//! event to its last. Without a running run it ends as the thread stands: with its open interrupts, or successfully.

use axum::{
    Extension,
    body::Body,
    extract::{Request, State},
    http::header,
    response::Response,
};

use serde::Deserialize;

use super::{
    App,
    error::ApiError,
    extract::Path,
    follow::{Cursors, Followed},
    middleware::Caller,
    read_body, sse_response,
};
use crate::{
    encode::Encoder,
    protocol::{
        Event, Messages, RunId, ThreadId,
        event::{MessagesSnapshot, RunFinished, RunOutcome, RunStarted, StateSnapshot},
    },
    run::ThreadConnection,
    store::ThreadView,
};

/// The part of a `RunAgentInput` that is used.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ConnectInput {
    run_id: Option<RunId>,
}

/// The number of a run's first event, which this stream begins with itself.
const RUN_STARTED: u64 = 1;

/// Restates a thread and follows its running run. The body is a `RunAgentInput`, of which only the run's id is used, or
/// empty.
pub(super) async fn connect(
    State(app): State<App>,
    Path(thread): Path<String>,
    Extension(caller): Extension<Caller>,
    request: Request,
) -> Result<Response, ApiError> {
    let threads = app.threads().ok_or_else(ApiError::internal)?;
    let (head, body) = request.into_parts();
    let body = read_body::read(body, read_body::Limits::of(app.options(), &head.headers)).await?;
    let run_id = match body.is_empty() {
        true => None,
        false => serde_json::from_slice::<ConnectInput>(&body).map_err(|error| ApiError::invalid_json(&error))?.run_id,
    };
    drop(body);
    let thread = thread.into();
    let connection = threads.connect(caller.principal().as_ref(), &thread).await?;
    let accept = head.headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    Ok(restate(&app, thread, connection, run_id, Encoder::negotiate(accept)))
}

/// The stream for a client that comes back: the thread as snapshots, then the running run, or else the end of one with
/// this id. A thread that does not exist yet is an empty one.
pub(crate) fn restate(
    app: &App,
    thread_id: ThreadId,
    connection: ThreadConnection,
    run_id: Option<RunId>,
    mut encoder: Encoder,
) -> Response {
    let ThreadConnection { view, running } = connection;
    let run_id = running.as_ref().map(|follower| follower.run_id().clone()).or(run_id).unwrap_or_else(RunId::random);
    let mut events = snapshots(&thread_id, &run_id, view.as_ref());
    if let Some(follower) = running {
        let (threads, after_first) = (app.threads().cloned(), Vec::new());
        return Followed { threads, before: events, skip: RUN_STARTED, after_first, follower, cursors: Cursors::No }
            .respond(encoder, app.options().keep_alive);
    }
    let interrupts = view.map(|view| view.thread.interrupts).unwrap_or_default();
    let outcome = match interrupts.is_empty() {
        true => RunOutcome::success(),
        false => RunOutcome::Interrupt { interrupts },
    };
    events.push(RunFinished::new(thread_id, run_id, outcome).into());
    let mut out = Vec::new();
    events.iter().for_each(|event| encoder.event(event, &mut out));
    sse_response::respond(encoder.media_type(), Body::from(out))
}

/// The messages and the state of a thread, as a run begins that restates them.
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
