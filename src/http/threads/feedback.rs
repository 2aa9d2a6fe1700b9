//! `POST /threads/{thread}/messages/{message}/feedback`: the caller's opinion of a message.

use axum::{
    Extension,
    extract::{Request, State},
    http::StatusCode,
};
use serde::Deserialize;

use crate::http::openapi::refuse;
use crate::{
    http::{
        App,
        accept::{extract::Path, middleware::Caller, read_body},
        error::ApiError,
    },
    protocol::decode::decode_members,
};

#[derive(Deserialize)]
struct FeedbackInput {
    score: Option<f64>,
    comment: Option<String>,
}

/// Replaces earlier feedback. Without a score and a comment, it is removed.
#[utoipa::path(
    post,
    path = "/threads/{thread}/messages/{message}/feedback",
    operation_id = "giveFeedback",
    tag = "threads",
    summary = "Stores feedback on a message, in place of earlier feedback",
    request_body = ref("#/components/schemas/FeedbackInput"),
    responses((status = 204, description = "The feedback is stored."), refuse::Body, refuse::Message, refuse::Store, refuse::Thread)
)]
pub(crate) async fn give_feedback(
    State(app): State<App>,
    Path((thread, message)): Path<(String, String)>,
    Extension(caller): Extension<Caller>,
    request: Request,
) -> Result<StatusCode, ApiError> {
    let threads = app.threads().ok_or_else(ApiError::internal)?;
    let (head, body) = request.into_parts();
    let body = read_body::read_small(&app, &head, body).await?;
    let FeedbackInput { score, comment } = decode_members(&body)?;
    let principal = caller.principal();
    threads.give_feedback(principal.as_ref(), &thread.into(), &message.into(), score, comment).await?;
    Ok(StatusCode::NO_CONTENT)
}
