//! `POST /threads/{thread}/fork`: a new thread that begins as a copy of a branch.

use axum::{
    Extension, Json,
    extract::{Request, State},
    http::StatusCode,
};
use serde::Deserialize;

use super::list::ThreadSummaryJson;
use crate::{
    http::{App, error::ApiError, extract::Path, middleware::Caller, read_body},
    protocol::{MessageId, ThreadId, decode::decode_members},
};

/// The request body, which may be empty.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ForkInput {
    /// The id of the new thread. A random one by default.
    thread_id: Option<ThreadId>,
    /// The last message of the copy. The last message of the current branch by default.
    message_id: Option<MessageId>,
}

/// Copies a branch. Counts as a run for the limits of runs.
pub(in crate::http) async fn fork(
    State(app): State<App>,
    Path(thread): Path<String>,
    Extension(caller): Extension<Caller>,
    request: Request,
) -> Result<(StatusCode, Json<ThreadSummaryJson>), ApiError> {
    let threads = app.threads().ok_or_else(ApiError::internal)?;
    let (head, body) = request.into_parts();
    let body = read_body::read_small(&app, &head, body).await?;
    let input = match body.trim_ascii().is_empty() {
        true => ForkInput::default(),
        false => decode_members::<ForkInput>(&body)?,
    };
    let principal = caller.principal();
    let _slot = app.runs().reserve(principal.as_ref())?;
    let new_id = input.thread_id.unwrap_or_else(|| uuid::Uuid::new_v4().to_string().into());
    let copy = threads.fork(principal.as_ref(), &thread.into(), new_id, input.message_id.as_ref()).await?;
    Ok((StatusCode::CREATED, Json(copy.into_summary().into())))
}
