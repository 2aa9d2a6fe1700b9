//! `POST /agent/{agent}/stop/{thread}`: ends the running run of a thread, on any server that shares the store. The
//! client reads the run to its end, which is a cancelled one.

use std::time::Duration;

use axum::{
    Extension, Json,
    extract::{Request, State},
};
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, sleep};
use utoipa::ToSchema;

use super::agents::find_agent;
use crate::http::{ApiResult, App, Caller, Path, read_body, refuse};
use agui_protocol::{RunId, ThreadId};
use agui_run::threads::{ThreadError, Threads};
use agui_store::ThreadKey;

const RUN_WAIT_TIMEOUT: Duration = Duration::from_secs(1);
const RUN_POLL_INTERVAL: Duration = Duration::from_millis(50);

/// The request body, which may be empty. Without a run id, the thread's running run is stopped.
#[derive(Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = CopilotStopInput)]
pub(super) struct StopInput {
    /// The running run by default.
    run_id: Option<RunId>,
}

#[derive(Serialize, ToSchema)]
pub(super) struct CopilotStopResult {
    stopped: bool,
    message: &'static str,
}

/// Cancels the running run of a thread.
#[utoipa::path(
    post,
    path = "/agent/{agent}/stop/{thread}",
    request_body(content = StopInput, description = "May be absent."),
    responses(
        (status = 200, description = "Whether a run is being cancelled.", body = CopilotStopResult),
        refuse::Agent, refuse::Body, refuse::Store,
    ),
)]
pub(super) async fn stop_copilot_run(
    State(app): State<App>,
    Path((agent, thread)): Path<(String, ThreadId)>,
    Extension(caller): Extension<Caller>,
    request: Request,
) -> ApiResult<Json<CopilotStopResult>> {
    find_agent(&app, &agent)?;
    let body = read_body::read_small(&app, request).await?;
    let input: StopInput = read_body::decode_optional(&body)?;
    let stopped = stop_run(&app.threads, &caller.key(thread), input.run_id.as_ref()).await?;
    let message =
        if stopped { "the run is being stopped" } else { "the thread has no such running run" };
    Ok(Json(CopilotStopResult { stopped, message }))
}

/// Waits for a run that the page names: its request can arrive after the stop, or the run can be
/// queued.
async fn stop_run(
    threads: &Threads,
    key: &ThreadKey,
    wanted: Option<&RunId>,
) -> Result<bool, ThreadError> {
    let deadline = Instant::now() + RUN_WAIT_TIMEOUT;
    loop {
        match stop_active(threads, key, wanted).await {
            Err(ThreadError::NoThread | ThreadError::NoRun)
                if wanted.is_none() || Instant::now() >= deadline =>
            {
                return Ok(false);
            }
            Err(ThreadError::NoThread | ThreadError::NoRun) => sleep(RUN_POLL_INTERVAL).await,
            stopped => return stopped,
        }
    }
}

async fn stop_active(
    threads: &Threads,
    key: &ThreadKey,
    wanted: Option<&RunId>,
) -> Result<bool, ThreadError> {
    let run = match wanted {
        Some(wanted) => wanted.clone(),
        None => {
            let thread = threads.thread(key).await?;
            Some(thread.run_id).filter(|_| thread.is_running).ok_or(ThreadError::NoRun)?
        }
    };
    Ok(threads.cancel(key, &run).await?.is_none())
}
