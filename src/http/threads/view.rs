//! `GET /threads/{thread}`: a thread with its newest messages and runs.

use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::{
    pages::{PAGE_SIZE, TimeText, time},
    runs::RunJson,
};
use crate::http::{ApiResult, OwnThreads, Path, refuse};
use agui_protocol::{Interrupt, JsonObject, RunId, ThreadId};
use agui_run::threads::MessageList;

const RUNS_PER_THREAD: usize = 20;

/// A thread, with the newest messages of its current branch.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Thread)]
pub(crate) struct ThreadJson {
    thread_id: ThreadId,
    /// The agent of the newest run.
    agent: String,
    #[schema(required)]
    title: Option<String>,
    archived: bool,
    #[schema(value_type = Object)]
    metadata: JsonObject,
    #[serde(skip_serializing_if = "Option::is_none")]
    /// The running run.
    active_run_id: Option<RunId>,
    #[serde(flatten)]
    #[schema(inline)]
    newest: MessageList,
    state: Value,
    /// The open interrupts.
    interrupts: Vec<Interrupt>,
    version: i64,
    created_at: TimeText,
    updated_at: TimeText,
    /// The newest run first.
    runs: Vec<RunJson>,
    /// The stored runs that wait for their turn, the next one first.
    queued: Vec<QueuedJson>,
}

/// A run that waits for its turn.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = QueuedRun)]
struct QueuedJson {
    run_id: RunId,
    agent: String,
    queued_at: TimeText,
}

/// Returns a thread with its newest messages and runs.
///
/// These are the newest 50 messages of its current branch, its state, its open interrupts, its newest 20 runs, and its queued runs.
#[utoipa::path(
    get,
    path = "/threads/{thread}",
    responses((status = 200, description = "The thread.", body = ThreadJson), refuse::ResponseMemory, refuse::Store, refuse::Thread)
)]
pub(crate) async fn read_thread(Path(id): Path<ThreadId>, own: OwnThreads) -> ApiResult {
    let key = own.caller.key(id);
    let permit = own.app.response_permit(&key).await?;
    let mut view = own.threads.overview(&key, RUNS_PER_THREAD, None, PAGE_SIZE).await?;
    own.present(&mut view.messages.messages);
    let thread = view.thread;
    permit.json(&ThreadJson {
        thread_id: thread.key.id,
        agent: thread.agent,
        title: thread.title,
        archived: thread.archived,
        metadata: thread.metadata,
        active_run_id: thread.is_running.then_some(thread.run_id),
        newest: view.messages,
        state: thread.state.map_or_else(|| serde_json::json!({}), |(_, state)| state),
        interrupts: thread.interrupts,
        version: thread.version,
        created_at: time(thread.created_at),
        updated_at: time(thread.updated_at),
        runs: view
            .runs
            .into_iter()
            .map(|run| RunJson::new(run, &own.app.runs.metrics.prices))
            .collect(),
        queued: view
            .queued
            .into_iter()
            .map(|run| QueuedJson {
                run_id: run.run_id,
                agent: run.agent,
                queued_at: time(run.queued_at),
            })
            .collect(),
    })
}
