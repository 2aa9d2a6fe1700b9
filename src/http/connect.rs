//! `POST /threads/{thread}/connect`: a thread, for a client that comes back to it.
//!
//! A stream that any AG-UI client understands: the thread restated as snapshots, then the run that goes on, from its
//! first event to its last, if one does. Otherwise it ends as the thread stands: with its open interrupts, or well.

use axum::{
    Extension,
    body::Body,
    extract::{Request, State},
    http::header,
    response::Response,
};

use serde::Deserialize;

use super::{App, error::ApiError, extract::Path, follow, middleware::Caller, read_body, stream};
use crate::{
    encode::Encoder,
    protocol::{
        Event, RunId,
        event::{MessagesSnapshot, RunFinished, RunOutcome, RunStarted, StateSnapshot},
    },
    run::Connection,
    store::Thread,
};

/// What is read of a `RunAgentInput`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Asked {
    run_id: Option<RunId>,
}

/// The first event of a run is the one that this stream begins with itself.
const RUN_STARTED: u64 = 1;

/// Restates a thread and follows what goes on in it. The body is a `RunAgentInput`, of which only the run's id is
/// used, or empty.
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
        false => serde_json::from_slice::<Asked>(&body).map_err(|error| ApiError::invalid_json(&error))?.run_id,
    };
    drop(body);
    let connection = threads.connect(caller.principal().as_ref(), &thread.into()).await?;
    let accept = head.headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    Ok(restate(&app, connection, run_id, Encoder::negotiate(accept)))
}

/// The stream that a client gets who comes back. A thread in which nothing goes on is told as a run of this id.
pub(super) fn restate(app: &App, connection: Connection, run_id: Option<RunId>, mut encoder: Encoder) -> Response {
    let Connection { mut thread, running } = connection;
    let run_id = running.as_ref().map(|tail| tail.run_id().clone()).or(run_id).unwrap_or_else(RunId::random);
    let interrupts = std::mem::take(&mut thread.content.interrupts);
    let thread_id = thread.id.clone();
    let mut events = snapshots(thread, run_id.clone());
    if let Some(tail) = running {
        let keep_alive = app.options().keep_alive;
        return follow::respond_after(events, RUN_STARTED, tail, encoder, follow::Cursors::No, keep_alive);
    }
    let outcome = match interrupts.is_empty() {
        true => RunOutcome::success(),
        false => RunOutcome::Interrupt { interrupts },
    };
    events.push(RunFinished::new(thread_id, run_id, outcome).into());
    let mut out = Vec::new();
    events.iter().for_each(|event| encoder.event(event, &mut out));
    stream::respond(encoder.media_type(), Body::from(out))
}

/// What a thread holds.
pub(super) fn snapshots(thread: Thread, run_id: RunId) -> Vec<Event> {
    vec![
        RunStarted::new(thread.id, run_id).into(),
        MessagesSnapshot::new(thread.content.messages).into(),
        StateSnapshot::new(thread.content.state.unwrap_or_else(|| serde_json::json!({}))).into(),
    ]
}
