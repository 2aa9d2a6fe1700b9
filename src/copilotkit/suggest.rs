//! `POST /agent/{agent}/suggest`: runs an agent for suggestions of what the user may say next. Nothing is stored: the
//! thread of such a request is made up for it, and would fill the list of threads.

use axum::{
    extract::{Request, State},
    response::Response,
};

use super::agents::find_agent;
use crate::http::{App, error::ApiError, extract::Path, run_response::respond_run, send_message::read_run};

pub(super) async fn suggest(
    State(app): State<App>,
    Path(agent): Path<String>,
    request: Request,
) -> Result<Response, ApiError> {
    let (run, encoder) = read_run(&app, find_agent(&app, &agent)?, None, request).await?;
    Ok(respond_run(&app, app.runs().start_unstored(run)?, encoder).await)
}
