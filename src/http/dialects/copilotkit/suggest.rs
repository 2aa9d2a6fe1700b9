//! `POST /agent/{agent}/suggest`: runs an agent for suggestions of what the user may say next. Nothing is stored: the
//! thread of such a request is made up for it, and would fill the list of threads.

use axum::{
    extract::{Request, State},
    response::Response,
};

use super::agents::find_agent;
use crate::http::openapi::{answer, refuse};
use crate::http::{App, accept::extract::Path, error::ApiError, run_response::respond_run, send_message::read_input};
use crate::protocol::RunAgentInput;

/// Runs an agent, and stores nothing.
#[utoipa::path(
    post,
    path = "/agent/{agent}/suggest",
    operation_id = "suggest",
    tag = "CopilotKit",
    request_body = RunAgentInput,
    responses(answer::EventAnswer, refuse::Agent, refuse::Body, refuse::Limits, refuse::Start, refuse::Store)
)]
pub(super) async fn suggest(
    State(app): State<App>,
    Path(agent): Path<String>,
    request: Request,
) -> Result<Response, ApiError> {
    let (run, encoder) = read_input(&app, find_agent(&app, &agent)?, None, request).await?;
    Ok(respond_run(&app, app.runs().start_unstored(run)?, encoder).await)
}
