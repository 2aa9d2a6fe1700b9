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
    let run_id = run_id.unwrap_or_else(RunId::random);
    drop(body);
    let Connection { thread, running } = threads.connect(caller.principal().as_ref(), &thread.into()).await?;

    let run_id = running.as_ref().map_or(run_id, |tail| tail.run_id().clone());
    let mut events: Vec<Event> = vec![
        RunStarted::new(thread.id.clone(), run_id.clone()).into(),
        MessagesSnapshot::new(thread.content.messages).into(),
        StateSnapshot::new(thread.content.state.unwrap_or_else(|| serde_json::json!({}))).into(),
    ];
    let accept = head.headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let mut encoder = Encoder::negotiate(accept);
    if let Some(tail) = running {
        let keep_alive = app.options().keep_alive;
        return Ok(follow::respond_after(events, RUN_STARTED, tail, encoder, follow::Cursors::No, keep_alive));
    }
    let outcome = match thread.content.interrupts {
        none if none.is_empty() => RunOutcome::success(),
        interrupts => RunOutcome::Interrupt { interrupts },
    };
    events.push(RunFinished::new(thread.id, run_id, outcome).into());
    let mut out = Vec::new();
    events.iter().for_each(|event| encoder.event(event, &mut out));
    Ok(stream::respond(encoder.media_type(), Body::from(out)))
}
