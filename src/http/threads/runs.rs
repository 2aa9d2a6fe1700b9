//! Runs of a thread as JSON, `GET /threads/{thread}/runs/{run}`, and `POST /threads/{thread}/runs/{run}/cancel`.

use std::time::Duration;

use axum::{Json, http::StatusCode, response::IntoResponse as _};
use serde::{Deserialize, Serialize};
use tokio::time::timeout;
use utoipa::{IntoParams, ToSchema, openapi::schema::ObjectBuilder};

use super::pages::{TimeText, time};
use crate::http::{
    ApiError, ApiResult, OwnThreads, Path, Query,
    openapi::schema::text_of,
    refuse,
    run_document::{DocumentReader, RunDocument, next_events},
};
use agui_observe::metrics::Prices;
use agui_protocol::{RunId, ThreadId, TokenUsage};
use agui_run::{
    log::{FollowError, Follower},
    threads::ThreadError,
};
use agui_store::{EndReason, RunFailure, RunRecord, RunStatus};

/// The longest `wait`, in seconds: proxies close connections that are silent for a minute.
const MAX_WAIT_SECS: u64 = 50;

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct RunQuery {
    /// The time to wait for the end of the run, in seconds. 0 by default.
    #[param(value_type = Option<u32>, minimum = 0, maximum = 50)]
    wait: Option<String>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Run)]
pub(super) struct RunJson {
    run_id: RunId,
    /// The number of this attempt among those with its `runId`, from 1.
    attempt: u32,
    agent: String,
    status: RunStatus,
    /// True if the run continues without its client, and can be followed.
    detached: bool,
    started_at: TimeText,
    #[serde(skip_serializing_if = "Option::is_none")]
    ended_at: Option<TimeText>,
    /// Why it ended before its agent had finished.
    #[serde(skip_serializing_if = "Option::is_none")]
    end_reason: Option<EndReason>,
    events: u64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    usage: Vec<TokenUsage>,
    /// The cost of the tokens, in the currency of `[prices]`. Absent if a model has no price.
    #[serde(skip_serializing_if = "Option::is_none")]
    cost: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<RunFailure>,
    /// The number of times that another server took the run over, to continue or to close it.
    #[serde(skip_serializing_if = "is_zero")]
    takeovers: u64,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Cancellation {
    run_id: RunId,
    #[schema(schema_with = cancellation_status)]
    status: &'static str,
    message: &'static str,
}

/// Returns the result of a detached run, when it has ended.
///
/// The messages that it added, its outcome and its tokens.
#[utoipa::path(
    get,
    path = "/threads/{thread}/runs/{run}",
    tag = "runs",
    params(RunQuery),
    responses(
        (status = 200, description = "The run has ended.", body = RunDocument),
        (status = 202, description = "It has not ended: `status` is `running`.", body = RunDocument),
        refuse::ResponseMemory, refuse::Follow, refuse::Parameter, refuse::Store,
    ),
)]
pub(crate) async fn read_run(
    Path((thread, id)): Path<(ThreadId, RunId)>,
    Query(query): Query<RunQuery>,
    own: OwnThreads,
) -> ApiResult {
    let wait = query.wait.as_deref().map_or(Ok(0), str::parse);
    let wait = wait.ok().filter(|wait| *wait <= MAX_WAIT_SECS).map(Duration::from_secs);
    let wait = wait.ok_or(ApiError::InvalidParameter {
        name: "wait",
        expected: "a number of seconds from 0 to 50",
    })?;
    let key = own.caller.key(thread);
    let running = match own.threads.detached_run(&key, &id).await {
        Ok(run) if run.status != RunStatus::Running => None,
        Ok(run) => Some(own.threads.follower(&key, &run, run.events)?),
        Err(ThreadError::NoRun) => {
            Some(own.threads.follow_queued(&key, &id).await?.ok_or(ThreadError::NoRun)?)
        }
        Err(error) => return Err(error.into()),
    };
    if let Some(running) = running
        && !timeout(wait, wait_for_end(running)).await.unwrap_or(Ok(false))?
    {
        return Ok((StatusCode::ACCEPTED, Json(RunDocument::running(key.id, id))).into_response());
    }
    let run = own.threads.detached_run(&key, &id).await?;
    // After the wait, which needs no memory.
    let permit = own.app.response_permit(&key).await?;
    let mut follower = own.threads.follower(&key, &run, 0)?;
    let mut reader = DocumentReader::for_log(key.id, id);
    while let Some(events) = next_events(&mut follower).await.map_err(unreadable)? {
        events.iter().for_each(|event| reader.read(event));
    }
    let mut document = reader.into_document();
    own.present(&mut document.messages);
    permit.json(&document)
}

/// Returns false if another server continues the run: the next request is answered there.
async fn wait_for_end(mut follower: Follower) -> Result<bool, ThreadError> {
    loop {
        match follower.next().await {
            Ok(Some(_)) => {}
            Ok(None) => return Ok(true),
            Err(FollowError::HandedOver) => return Ok(false),
            Err(error) => return Err(unreadable(error)),
        }
    }
}

fn unreadable(error: FollowError) -> ThreadError {
    match error {
        FollowError::Store(error) => error.into(),
        FollowError::ThreadDeleted => ThreadError::NoThread,
        FollowError::Gone | FollowError::HandedOver => ThreadError::LogRemoved,
    }
}

/// Cancels a run, on any replica.
///
/// The stream of a running run then ends with the outcome `cancelled`.
#[utoipa::path(
    post,
    path = "/threads/{thread}/runs/{run}/cancel",
    tag = "runs",
    responses(
        (status = 200, description = "The run had already ended.", body = Cancellation),
        (status = 202, description = "The run is being cancelled.", body = Cancellation),
        refuse::Run, refuse::Store, refuse::Thread,
    ),
)]
pub(crate) async fn cancel_run(
    Path((thread, run_id)): Path<(ThreadId, RunId)>,
    own: OwnThreads,
) -> ApiResult<(StatusCode, Json<Cancellation>)> {
    let (code, status, message) = match own.threads.cancel(&own.caller.key(thread), &run_id).await?
    {
        None => (StatusCode::ACCEPTED, "cancelling", "the run is being cancelled"),
        Some(run) => (StatusCode::OK, run.status.as_str(), "the run had already ended"),
    };
    Ok((code, Json(Cancellation { run_id, status, message })))
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

fn cancellation_status() -> ObjectBuilder {
    text_of(["cancelling"].into_iter().chain(RunStatus::ALL.map(RunStatus::as_str)))
}

impl RunJson {
    pub(super) fn new(run: RunRecord, prices: &Prices) -> Self {
        Self {
            cost: prices.cost_of_run(&run.usage),
            run_id: run.id,
            attempt: run.attempt,
            agent: run.agent,
            status: run.status,
            detached: run.detached,
            started_at: time(run.started_at),
            ended_at: run.ended_at.map(time),
            end_reason: run.end_reason,
            events: run.events,
            usage: run.usage,
            error: run.failure,
            takeovers: run.takeovers,
        }
    }
}
