//! `POST /agent/{agent}/stop/{thread}`: ends the run that goes on in a thread, in whichever server it does.
//!
//! A client only says this and goes on reading the run, which then ends as cancelled. That there was nothing to stop
//! is no error, but said.

use axum::{
    Extension, Json,
    extract::{Request, State},
};
use serde::{Deserialize, Serialize};

use super::agent_of;
use crate::{
    http::{
        App,
        error::ApiError,
        extract::Path,
        middleware::Caller,
        read_body::{self, Limits},
    },
    protocol::{RunId, ThreadId},
    run::{Cancelled, LookupError, Principal, Threads},
};

/// A client that knows which run it means says so; one that came back to the thread means whichever there is.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Asked {
    run_id: Option<RunId>,
}

#[derive(Serialize)]
pub(super) struct Stopped {
    stopped: bool,
    message: &'static str,
}

pub(super) async fn stop(
    State(app): State<App>,
    Path((agent, thread)): Path<(String, String)>,
    Extension(caller): Extension<Caller>,
    request: Request,
) -> Result<Json<Stopped>, ApiError> {
    agent_of(&app, &agent)?;
    let threads = app.threads().ok_or_else(ApiError::nothing_kept)?;
    let (head, body) = request.into_parts();
    let body = read_body::read(body, Limits::of(app.options(), &head.headers)).await?;
    let asked = match body.trim_ascii().is_empty() {
        true => Asked::default(),
        false => serde_json::from_slice(&body).map_err(|error| ApiError::invalid_json(&error))?,
    };
    let stopped = match stop_active(threads, caller.principal().as_ref(), &thread.into(), asked.run_id.as_ref()).await {
        Ok(stopped) => stopped,
        Err(LookupError::NoThread | LookupError::NoRun) => false,
        Err(error) => return Err(error.into()),
    };
    let message = if stopped { "the run is being stopped" } else { "there is no such run to be stopped" };
    Ok(Json(Stopped { stopped, message }))
}

async fn stop_active(
    threads: &Threads,
    owner: Option<&Principal>,
    thread: &ThreadId,
    wanted: Option<&RunId>,
) -> Result<bool, LookupError> {
    let active = threads.thread(owner, thread).await?.active_run;
    let Some(run) = active.filter(|active| wanted.is_none_or(|wanted| wanted == active)) else { return Ok(false) };
    Ok(threads.cancel(owner, thread, &run).await? == Cancelled::Requested)
}
