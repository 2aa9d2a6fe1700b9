//! A caller's threads: listed, read and deleted; and their runs, cancelled.

use axum::{Extension, Json, extract::State, http::StatusCode};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    App,
    error::ApiError,
    extract::{Path, Query},
    middleware::Caller,
};
use crate::{
    protocol::{Interrupt, Messages, RunId, ThreadId, TokenUsage},
    run::CancelOutcome,
    store::{Millis, RunRecord, ThreadPage, ThreadSummary},
};

/// How many threads a page has, unless it is asked for otherwise, and at most.
const PAGE: [usize; 2] = [50, 200];
/// How many runs of a thread are shown.
const RUNS: usize = 20;

#[derive(Deserialize)]
pub(super) struct Page {
    limit: Option<String>,
    cursor: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct List {
    threads: Vec<Summary>,
    /// The `cursor` of the next page, if there may be one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Summary {
    thread_id: ThreadId,
    agent: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    active_run_id: Option<RunId>,
    open_interrupts: u64,
    created_at: String,
    updated_at: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Thread {
    thread_id: ThreadId,
    agent: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    active_run_id: Option<RunId>,
    messages: Messages,
    state: Value,
    interrupts: Vec<Interrupt>,
    version: i64,
    created_at: String,
    updated_at: String,
    /// The newest first.
    runs: Vec<Run>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Run {
    run_id: RunId,
    agent: String,
    status: &'static str,
    /// Whether it outlives its connection, and can be followed.
    detached: bool,
    started_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    ended_at: Option<String>,
    events: u64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    usage: Vec<TokenUsage>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Failure>,
}

#[derive(Serialize)]
struct Failure {
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<String>,
    message: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Stopped {
    run_id: RunId,
    status: &'static str,
    message: &'static str,
}

/// `GET /threads?limit=…&cursor=…`
pub(super) async fn list(
    State(app): State<App>,
    Query(page): Query<Page>,
    Extension(caller): Extension<Caller>,
) -> Result<Json<List>, ApiError> {
    let threads = app.threads().ok_or_else(ApiError::internal)?;
    let limit = page_size(page.limit.as_deref())?;
    let after = page.cursor.as_deref().map(read_cursor).transpose()?;
    let found = threads.list(caller.principal().as_ref(), &ThreadPage { after, limit }).await?;
    let next = found.last().filter(|_| found.len() == limit).map(cursor);
    Ok(Json(List { threads: found.into_iter().map(Summary::from).collect(), next }))
}

/// `GET /threads/{thread}`
pub(super) async fn read(
    State(app): State<App>,
    Path(thread): Path<String>,
    Extension(caller): Extension<Caller>,
) -> Result<Json<Thread>, ApiError> {
    let threads = app.threads().ok_or_else(ApiError::internal)?;
    let view = threads.read(caller.principal().as_ref(), &thread.into(), RUNS).await?;
    let messages = view.current_branch().into_iter().cloned().collect();
    let thread = view.thread;
    Ok(Json(Thread {
        thread_id: thread.key.id,
        agent: thread.agent,
        active_run_id: thread.is_running.then_some(thread.run_id),
        messages,
        state: thread.state.map_or_else(|| serde_json::json!({}), |(_, state)| state),
        interrupts: thread.interrupts,
        version: thread.version,
        created_at: time(thread.created_at),
        updated_at: time(thread.updated_at),
        runs: view.runs.into_iter().map(Run::from).collect(),
    }))
}

/// `DELETE /threads/{thread}`: a run that goes on is cancelled first.
pub(super) async fn delete(
    State(app): State<App>,
    Path(thread): Path<String>,
    Extension(caller): Extension<Caller>,
) -> Result<StatusCode, ApiError> {
    let threads = app.threads().ok_or_else(ApiError::internal)?;
    threads.delete(caller.principal().as_ref(), &thread.into()).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// `POST /threads/{thread}/runs/{run}/cancel`
pub(super) async fn cancel(
    State(app): State<App>,
    Path((thread, run)): Path<(String, String)>,
    Extension(caller): Extension<Caller>,
) -> Result<(StatusCode, Json<Stopped>), ApiError> {
    let threads = app.threads().ok_or_else(ApiError::internal)?;
    let run_id = RunId::from(run);
    Ok(match threads.cancel(caller.principal().as_ref(), &thread.into(), &run_id).await? {
        CancelOutcome::Requested => {
            let message = "the run is being stopped";
            (StatusCode::ACCEPTED, Json(Stopped { run_id, status: "cancelling", message }))
        }
        CancelOutcome::Ended(run) => {
            let message = "the run had ended before; nothing was done";
            (StatusCode::OK, Json(Stopped { run_id, status: run.status.as_str(), message }))
        }
    })
}

/// How many threads are asked for.
pub(crate) fn page_size(limit: Option<&str>) -> Result<usize, ApiError> {
    let [usual, most] = PAGE;
    match limit.map(str::parse) {
        None => Ok(usual),
        Some(Ok(limit)) if (1..=most).contains(&limit) => Ok(limit),
        Some(_) => Err(ApiError::invalid_parameter("limit", "a number from 1 to 200")),
    }
}

/// Where the next page begins. Callers give it back as it is.
pub(crate) fn cursor(last: &ThreadSummary) -> String {
    last.run.to_string()
}

pub(crate) fn read_cursor(cursor: &str) -> Result<i64, ApiError> {
    cursor.parse().map_err(|_| ApiError::invalid_parameter("cursor", "the `next` of another page"))
}

/// With all three digits, also when they are zeros, so that times sort as texts.
pub(crate) fn time(millis: Millis) -> String {
    Timestamp::from_millisecond(millis).map_or_else(|_| millis.to_string(), |time| format!("{time:.3}"))
}

impl From<ThreadSummary> for Summary {
    fn from(thread: ThreadSummary) -> Self {
        Self {
            thread_id: thread.id,
            agent: thread.agent,
            active_run_id: thread.active_run,
            open_interrupts: thread.open_interrupts,
            created_at: time(thread.created_at),
            updated_at: time(thread.updated_at),
        }
    }
}

impl From<RunRecord> for Run {
    fn from(run: RunRecord) -> Self {
        Self {
            run_id: run.id,
            agent: run.agent,
            status: run.status.as_str(),
            detached: run.detached,
            started_at: time(run.started_at),
            ended_at: run.ended_at.map(time),
            events: run.events,
            usage: run.usage,
            error: run.failure.map(|failure| Failure { code: failure.code, message: failure.message }),
        }
    }
}
