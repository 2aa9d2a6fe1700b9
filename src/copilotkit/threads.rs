//! A caller's threads in the format of CopilotKit's thread list and inspector.

use axum::{Extension, Json, extract::State};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::agents::find_agent;
use crate::{
    http::{
        App,
        connect::snapshots,
        error::ApiError,
        extract::{Path, Query},
        middleware::Caller,
        threads::{cursor, page_size, read_cursor, time},
    },
    protocol::{Event, Message, RunId, ThreadId},
    store::{ThreadPage, ThreadSummary, ThreadView},
};

const SCAN_PAGE_SIZE: usize = 200;
/// A request reads at most this many pages. If there are more, the response has a cursor.
const MAX_SCAN_PAGES: usize = 10;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ThreadListQuery {
    agent_id: Option<String>,
    limit: Option<String>,
    cursor: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ThreadList {
    threads: Vec<ThreadListItem>,
    /// `null` at the end of the list.
    next_cursor: Option<String>,
}

/// A thread's record. Clients require all of these members, but this server stores no names, organizations or archives.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ThreadListItem {
    id: ThreadId,
    name: Option<String>,
    agent_id: String,
    organization_id: &'static str,
    created_by_id: &'static str,
    archived: bool,
    created_at: String,
    updated_at: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct DeleteResult {
    thread_id: ThreadId,
    deleted: bool,
}

#[derive(Serialize)]
pub(super) struct ThreadMessages {
    messages: Vec<Value>,
}

#[derive(Serialize)]
pub(super) struct ThreadState {
    state: Value,
}

#[derive(Serialize)]
pub(super) struct ThreadEvents {
    events: Vec<Event>,
}

pub(super) async fn list_threads(
    State(app): State<App>,
    Query(query): Query<ThreadListQuery>,
    Extension(caller): Extension<Caller>,
) -> Result<Json<ThreadList>, ApiError> {
    let threads = app.threads().ok_or_else(ApiError::no_stored_threads)?;
    let agent = query.agent_id.as_deref().map(|name| find_agent(&app, name)).transpose()?;
    let limit = page_size(query.limit.as_deref())?;
    let mut after = query.cursor.as_deref().map(read_cursor).transpose()?;
    let mut list = ThreadList { threads: Vec::new(), next_cursor: None };
    for _ in 0..MAX_SCAN_PAGES {
        let page = ThreadPage { after, limit: SCAN_PAGE_SIZE };
        let found = threads.list(caller.principal().as_ref(), &page).await?;
        let is_last_page = found.len() < SCAN_PAGE_SIZE;
        for thread in found {
            let next = cursor(&thread);
            if list.threads.len() == limit {
                return Ok(Json(list));
            }
            if agent.as_ref().is_none_or(|agent| agent.name() == thread.agent) {
                list.threads.push(ThreadListItem::of(thread, query.agent_id.as_deref()));
            }
            list.next_cursor = Some(next);
        }
        if is_last_page {
            list.next_cursor = None;
            break;
        }
        after = list.next_cursor.as_deref().map(read_cursor).transpose()?;
    }
    Ok(Json(list))
}

pub(super) async fn delete_thread(
    State(app): State<App>,
    Path(thread): Path<String>,
    Extension(caller): Extension<Caller>,
) -> Result<Json<DeleteResult>, ApiError> {
    let threads = app.threads().ok_or_else(ApiError::no_stored_threads)?;
    let thread_id = ThreadId::from(thread);
    threads.delete(caller.principal().as_ref(), &thread_id).await?;
    Ok(Json(DeleteResult { thread_id, deleted: true }))
}

pub(super) async fn thread_messages(
    app: State<App>,
    thread: Path<String>,
    caller: Extension<Caller>,
) -> Result<Json<ThreadMessages>, ApiError> {
    let view = read_thread(app, thread, caller).await?;
    Ok(Json(ThreadMessages { messages: view.current_branch().into_iter().map(inspector_message).collect() }))
}

pub(super) async fn thread_state(
    app: State<App>,
    thread: Path<String>,
    caller: Extension<Caller>,
) -> Result<Json<ThreadState>, ApiError> {
    let view = read_thread(app, thread, caller).await?;
    Ok(Json(ThreadState { state: view.thread.state.map_or_else(|| json!({}), |(_, state)| state) }))
}

/// Returns the events that restate the thread, because the events of its runs are not stored.
pub(super) async fn thread_events(
    app: State<App>,
    thread: Path<String>,
    caller: Extension<Caller>,
) -> Result<Json<ThreadEvents>, ApiError> {
    let view = read_thread(app, thread, caller).await?;
    let run = if view.thread.is_running { view.thread.run_id.clone() } else { RunId::random() };
    Ok(Json(ThreadEvents { events: snapshots(&view.thread.key.id, &run, Some(&view)) }))
}

async fn read_thread(
    State(app): State<App>,
    Path(thread): Path<String>,
    Extension(caller): Extension<Caller>,
) -> Result<ThreadView, ApiError> {
    let threads = app.threads().ok_or_else(ApiError::no_stored_threads)?;
    Ok(threads.read(caller.principal().as_ref(), &thread.into(), 0).await?)
}

/// Returns a message in the inspector's format, in which tool calls have no `function` object.
fn inspector_message(message: &Message) -> Value {
    let message = json!(message);
    let mut result = serde_json::Map::new();
    for member in ["id", "role", "content", "toolCallId"] {
        if let Some(value) = message.get(member) {
            result.insert(member.to_owned(), value.clone());
        }
    }
    if let Some(calls) = message.get("toolCalls").and_then(Value::as_array) {
        let flat = |call: &Value| {
            let function = &call["function"];
            json!({ "id": call["id"], "name": function["name"], "args": function["arguments"] })
        };
        result.insert("toolCalls".to_owned(), calls.iter().map(flat).collect());
    }
    result.into()
}

impl ThreadListItem {
    /// `agent` is the name that the client asked for, such as `default`: it looks for its threads by that name.
    fn of(thread: ThreadSummary, agent: Option<&str>) -> Self {
        Self {
            id: thread.id,
            name: None,
            agent_id: agent.map_or(thread.agent, str::to_owned),
            organization_id: "",
            created_by_id: "",
            archived: false,
            created_at: time(thread.created_at),
            updated_at: time(thread.updated_at),
        }
    }
}
