//! `POST /threads/{thread}/fork`: a new thread that begins as a copy of a branch.

use axum::{Json, extract::Request, http::StatusCode};
use serde::Deserialize;
use utoipa::ToSchema;

use super::list::ThreadSummary;
use crate::http::{ApiResult, OwnThreads, Path, read_body, refuse};
use agui_protocol::{MessageId, ThreadId};

/// The request body, which may be empty.
#[derive(Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ForkInput {
    /// The id of the new thread. A random one by default.
    thread_id: Option<ThreadId>,
    /// The last message of the copy. The last message of the current branch by default.
    message_id: Option<MessageId>,
}

/// Copies a branch to a new thread.
///
/// Counts as a run for the limits of runs.
#[utoipa::path(
    post,
    path = "/threads/{thread}/fork",
    request_body(content = ForkInput, description = "May be absent."),
    responses(
        (status = 201, description = "The new thread.", body = ThreadSummary),
        refuse::Body, refuse::Copy, refuse::Limits, refuse::Message, refuse::Store, refuse::Thread,
    ),
)]
pub(crate) async fn fork_thread(
    Path(id): Path<ThreadId>,
    own: OwnThreads,
    request: Request,
) -> ApiResult<(StatusCode, Json<ThreadSummary>)> {
    let body = read_body::read_small(&own.app, request).await?;
    let input: ForkInput = read_body::decode_optional(&body)?;
    let (caller, key) = (own.caller.principal.as_ref(), own.caller.key(id));
    let _permit = own.app.runs.reserve(caller)?;
    let new_id = input.thread_id.unwrap_or_else(|| uuid::Uuid::new_v4().to_string().into());
    let bytes = own.threads.thread(&key).await?.bytes;
    let _memory = own.app.runs.memory.copy(caller, bytes).await?;
    let copy = own.threads.fork(&key, new_id, input.message_id.as_ref()).await?;
    Ok((StatusCode::CREATED, Json(copy.into())))
}
