//! `POST /agent/{agent}/stop/{thread}`: ends the run that goes on in a thread, in whichever server it does.
//!
//! A client only says this and goes on reading the run, which then ends as cancelled. That there was nothing to stop
//! is no error, but said.

use std::time::Duration;

use axum::{
    Extension, Json,
    extract::{Request, State},
};
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, sleep};

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
    run::{CancelOutcome, LookupError, Principal, Threads},
};

/// How long a run that is not there yet is waited for, and how often it is looked for.
const PATIENCE: Duration = Duration::from_secs(1);
const POLL: Duration = Duration::from_millis(50);

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
    let owner = caller.principal();
    let stopped = stop_run(threads, owner.as_ref(), &thread.into(), asked.run_id.as_ref()).await?;
    let message = if stopped { "the run is being stopped" } else { "there is no such run to be stopped" };
    Ok(Json(Stopped { stopped, message }))
}

/// A page can be faster with its stop than with the run that it is for, or the run may wait for its turn.
async fn stop_run(
    threads: &Threads,
    owner: Option<&Principal>,
    thread: &ThreadId,
    wanted: Option<&RunId>,
) -> Result<bool, LookupError> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match stop_active(threads, owner, thread, wanted).await {
            Ok(stopped) => return Ok(stopped),
            Err(LookupError::NoThread | LookupError::NoRun) if wanted.is_none() || Instant::now() >= deadline => {
                return Ok(false);
            }
            Err(LookupError::NoThread | LookupError::NoRun) => sleep(POLL).await,
            Err(error) => return Err(error),
        }
    }
}

async fn stop_active(
    threads: &Threads,
    owner: Option<&Principal>,
    thread: &ThreadId,
    wanted: Option<&RunId>,
) -> Result<bool, LookupError> {
    let run = match wanted {
        Some(wanted) => wanted.clone(),
        None => {
            let thread = threads.thread(owner, thread).await?;
            Some(thread.run_id).filter(|_| thread.is_running).ok_or(LookupError::NoRun)?
        }
    };
    Ok(threads.cancel(owner, thread, &run).await? == CancelOutcome::Requested)
}
