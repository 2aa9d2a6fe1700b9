//! `POST /agent/{agent}/connect`: what a page asks for when it is opened, or reloaded.
//!
//! A new page asks for a thread that it has just made up, so one that is unknown is no error: there is nothing to tell
//! of it, and the stream is empty. Somebody else's thread looks the same, and so does every one of a server that keeps
//! none.

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
        stream,
    },
    protocol::{RunId, ThreadId},
    run::LookupError,
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
    let Some(threads) = app.threads() else { return Ok(nothing(&encoder)) };
    match threads.connect(caller.principal().as_ref(), &asked.thread_id).await {
        Ok(connection) => Ok(connect::restate(&app, connection, asked.run_id, encoder)),
        Err(LookupError::NoThread) => Ok(nothing(&encoder)),
        Err(error) => Err(error.into()),
    }
}

fn nothing(encoder: &Encoder) -> Response {
    stream::respond(encoder.media_type(), Body::empty())
}
