//! `GET /threads/{thread}`: a thread with its newest messages and runs.

use axum::{Extension, Json, extract::State};
use serde::Serialize;
use serde_json::Value;

use super::{PAGE_SIZE, messages::MessagesJson, runs::RunJson, time};
use crate::http::openapi::refuse;
use crate::{
    http::{
        App,
        accept::{extract::Path, middleware::Caller},
        error::ApiError,
    },
    protocol::{Interrupt, JsonObject, RunId, ThreadId},
};

const RUNS_PER_THREAD: usize = 20;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ThreadJson {
    thread_id: ThreadId,
    agent: String,
    title: Option<String>,
    archived: bool,
    metadata: JsonObject,
    #[serde(skip_serializing_if = "Option::is_none")]
    active_run_id: Option<RunId>,
    /// The newest messages of the current branch.
    #[serde(flatten)]
    newest: MessagesJson,
    state: Value,
    interrupts: Vec<Interrupt>,
    version: i64,
    created_at: String,
    updated_at: String,
    /// The newest run first.
    runs: Vec<RunJson>,
}

/// Returns a thread: the newest 50 messages of its current branch, its state, open interrupts, and its newest 20 runs.
#[utoipa::path(
    get,
    path = "/threads/{thread}",
    operation_id = "readThread",
    tag = "threads",
    summary = "Returns a thread with its newest messages and runs",
    responses((status = 200, description = "The thread.", body = ref("#/components/schemas/Thread")), refuse::Store, refuse::Thread)
)]
pub(crate) async fn read(
    State(app): State<App>,
    Path(thread): Path<String>,
    Extension(caller): Extension<Caller>,
) -> Result<Json<ThreadJson>, ApiError> {
    let threads = app.threads().ok_or_else(ApiError::internal)?;
    let principal = caller.principal();
    let view = threads.overview(principal.as_ref(), &thread.into(), RUNS_PER_THREAD, None, PAGE_SIZE).await?;
    let thread = view.thread;
    Ok(Json(ThreadJson {
        thread_id: thread.key.id,
        agent: thread.agent,
        title: thread.title,
        archived: thread.archived,
        metadata: thread.metadata,
        active_run_id: thread.is_running.then_some(thread.run_id),
        newest: view.messages.into(),
        state: thread.state.map_or_else(|| serde_json::json!({}), |(_, state)| state),
        interrupts: thread.interrupts,
        version: thread.version,
        created_at: time(thread.created_at),
        updated_at: time(thread.updated_at),
        runs: view.runs.into_iter().map(RunJson::from).collect(),
    }))
}
