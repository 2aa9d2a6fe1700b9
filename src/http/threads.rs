//! Lists, returns and deletes a caller's threads, and cancels their runs.

use axum::{Extension, Json, extract::State, http::StatusCode};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    error::ApiError,
    extract::{Path, Query},
    middleware::Caller,
    state::App,
};
use crate::{
    protocol::{Interrupt, Messages, RunId, ThreadId, TokenUsage},
    run::CancelOutcome,
    store::{Millis, RunRecord, ThreadPage, ThreadSummary},
};

const PAGE_SIZE: usize = 50;
const MAX_PAGE_SIZE: usize = 200;
const RUNS_PER_THREAD: usize = 20;

#[derive(Deserialize)]
pub(super) struct PageQuery {
    limit: Option<String>,
    cursor: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ThreadListJson {
    threads: Vec<ThreadSummaryJson>,
    /// Absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ThreadSummaryJson {
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
pub(super) struct ThreadJson {
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
    /// The newest run first.
    runs: Vec<RunJson>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RunJson {
    run_id: RunId,
    agent: String,
    status: &'static str,
    /// True if the run continues without its client, and can be followed.
    detached: bool,
    started_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    ended_at: Option<String>,
    events: u64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    usage: Vec<TokenUsage>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<RunFailure>,
}

#[derive(Serialize)]
struct RunFailure {
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<String>,
    message: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Cancellation {
    run_id: RunId,
    status: &'static str,
    message: &'static str,
}

pub(super) async fn list(
    State(app): State<App>,
    Query(page): Query<PageQuery>,
    Extension(caller): Extension<Caller>,
) -> Result<Json<ThreadListJson>, ApiError> {
    let threads = app.threads().ok_or_else(ApiError::internal)?;
    let limit = page_size(page.limit.as_deref())?;
    let after = page.cursor.as_deref().map(read_cursor).transpose()?;
    let found = threads.list(caller.principal().as_ref(), &ThreadPage { after, limit }).await?;
    let next = found.last().filter(|_| found.len() == limit).map(cursor);
    Ok(Json(ThreadListJson { threads: found.into_iter().map(ThreadSummaryJson::from).collect(), next }))
}

pub(super) async fn read(
    State(app): State<App>,
    Path(thread): Path<String>,
    Extension(caller): Extension<Caller>,
) -> Result<Json<ThreadJson>, ApiError> {
    let threads = app.threads().ok_or_else(ApiError::internal)?;
    let view = threads.read(caller.principal().as_ref(), &thread.into(), RUNS_PER_THREAD).await?;
    let messages = view.current_branch().into_iter().cloned().collect();
    let thread = view.thread;
    Ok(Json(ThreadJson {
        thread_id: thread.key.id,
        agent: thread.agent,
        active_run_id: thread.is_running.then_some(thread.run_id),
        messages,
        state: thread.state.map_or_else(|| serde_json::json!({}), |(_, state)| state),
        interrupts: thread.interrupts,
        version: thread.version,
        created_at: time(thread.created_at),
        updated_at: time(thread.updated_at),
        runs: view.runs.into_iter().map(RunJson::from).collect(),
    }))
}

/// A running run is cancelled first.
pub(super) async fn delete(
    State(app): State<App>,
    Path(thread): Path<String>,
    Extension(caller): Extension<Caller>,
) -> Result<StatusCode, ApiError> {
    let threads = app.threads().ok_or_else(ApiError::internal)?;
    threads.delete(caller.principal().as_ref(), &thread.into()).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(super) async fn cancel(
    State(app): State<App>,
    Path((thread, run)): Path<(String, String)>,
    Extension(caller): Extension<Caller>,
) -> Result<(StatusCode, Json<Cancellation>), ApiError> {
    let threads = app.threads().ok_or_else(ApiError::internal)?;
    let run_id = RunId::from(run);
    Ok(match threads.cancel(caller.principal().as_ref(), &thread.into(), &run_id).await? {
        CancelOutcome::Requested => {
            let message = "the run is being cancelled";
            (StatusCode::ACCEPTED, Json(Cancellation { run_id, status: "cancelling", message }))
        }
        CancelOutcome::Ended(run) => {
            let message = "the run had already ended";
            (StatusCode::OK, Json(Cancellation { run_id, status: run.status.as_str(), message }))
        }
    })
}

pub(crate) fn page_size(limit: Option<&str>) -> Result<usize, ApiError> {
    match limit.map(str::parse) {
        None => Ok(PAGE_SIZE),
        Some(Ok(limit)) if (1..=MAX_PAGE_SIZE).contains(&limit) => Ok(limit),
        Some(_) => Err(ApiError::invalid_parameter("limit", "a number from 1 to 200")),
    }
}

/// Opaque to clients.
pub(crate) fn cursor(last: &ThreadSummary) -> String {
    last.run.to_string()
}

pub(crate) fn read_cursor(cursor: &str) -> Result<i64, ApiError> {
    cursor.parse().map_err(|_| ApiError::invalid_parameter("cursor", "the `next` of another page"))
}

/// Three digits of milliseconds, so that times sort as texts.
pub(crate) fn time(millis: Millis) -> String {
    Timestamp::from_millisecond(millis).map_or_else(|_| millis.to_string(), |time| format!("{time:.3}"))
}

impl From<ThreadSummary> for ThreadSummaryJson {
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

impl From<RunRecord> for RunJson {
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
            error: run.failure.map(|failure| RunFailure { code: failure.code, message: failure.message }),
        }
    }
}
