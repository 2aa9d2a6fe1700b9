//! `POST /agent/{agent}/connect`: what a page asks for when it is opened, or reloaded.
//!
//! A new page asks for a thread that it has just made up, so an unknown thread is no error: the stream is empty, as from
//! CopilotKit's own runtime. A server that stores no threads answers the same.

use axum::{
    Extension,
    body::Body,
    extract::{Request, State},
    http::header,
    response::Response,
};
use serde::Deserialize;

use super::agent_of;
use crate::{
    encode::Encoder,
    http::{
        App, connect,
        error::ApiError,
        extract::Path,
        middleware::Caller,
        read_body::{self, Limits},
        sse_response,
    },
    protocol::{RunId, ThreadId},
    run::ThreadConnection,
};

/// What is read of a `RunAgentInput`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Asked {
    thread_id: ThreadId,
    run_id: Option<RunId>,
    /// Clients name one since AG-UI 1.0.
    protocol_version: Option<String>,
}

pub(super) async fn connect(
    State(app): State<App>,
    Path(agent): Path<String>,
    Extension(caller): Extension<Caller>,
    request: Request,
) -> Result<Response, ApiError> {
    agent_of(&app, &agent)?;
    let (head, body) = request.into_parts();
    let body = read_body::read(body, Limits::of(app.options(), &head.headers)).await?;
    let asked: Asked = serde_json::from_slice(&body).map_err(|error| ApiError::invalid_json(&error))?;
    drop(body);
    let accept = head.headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let mut encoder = Encoder::negotiate(accept);
    if asked.protocol_version.is_none() {
        encoder = encoder.for_legacy_client();
    }
    let Asked { thread_id, run_id, .. } = asked;
    let connection = match app.threads() {
        Some(threads) => threads.connect(caller.principal().as_ref(), &thread_id).await?,
        None => ThreadConnection { view: None, running: None },
    };
    if connection.view.is_none() {
        return Ok(sse_response::respond(encoder.media_type(), Body::empty()));
    }
    Ok(connect::restate(&app, thread_id, connection, run_id, encoder))
}
