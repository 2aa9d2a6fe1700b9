//! `POST /threads/{thread}/messages/{message}/feedback`: the caller's opinion of a message.

use axum::{extract::Request, http::StatusCode};
use serde::Deserialize;
use utoipa::ToSchema;

use crate::http::{ApiResult, OwnThreads, Path, read_body, refuse};
use agui_protocol::{MessageId, ThreadId, decode::decode_members};

/// Without members, feedback is removed.
#[derive(Deserialize, ToSchema)]
pub(crate) struct FeedbackInput {
    score: Option<f64>,
    comment: Option<String>,
}

/// Stores feedback on a message, in place of earlier feedback.
///
/// Without a score and a comment, it is removed.
#[utoipa::path(
    post,
    path = "/threads/{thread}/messages/{message}/feedback",
    request_body = FeedbackInput,
    responses((status = 204, description = "The feedback is stored."), refuse::Body, refuse::Message, refuse::Store, refuse::Thread)
)]
pub(crate) async fn give_feedback(
    Path((thread, message)): Path<(ThreadId, MessageId)>,
    own: OwnThreads,
    request: Request,
) -> ApiResult<StatusCode> {
    let body = read_body::read_small(&own.app, request).await?;
    let FeedbackInput { score, comment } = decode_members(&body)?;
    own.threads.give_feedback(&own.caller.key(thread), &message, score, comment).await?;
    Ok(StatusCode::NO_CONTENT)
}
