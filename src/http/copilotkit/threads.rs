//! A caller's threads, in the words of CopilotKit's lists and inspector.

use axum::{Extension, Json, extract::State};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::agent_of;
use crate::{
    http::{
        App, connect,
        error::ApiError,
        extract::{Path, Query},
        middleware::Caller,
        threads::{cursor, page_size, read_cursor, time},
    },
    protocol::{Event, Message, RunId, ThreadId},
    store::{ThreadPage, ThreadSummary, ThreadView},
};

/// How many threads are looked at in one go for those of an agent, and how often before the caller has to ask on.
const LOOKED_AT: [usize; 2] = [200, 10];

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Asked {
    agent_id: Option<String>,
    limit: Option<String>,
    cursor: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct List {
    threads: Vec<Summary>,
    /// `null` says that there are no more.
    next_cursor: Option<String>,
}

/// What a client expects of each: names, archives and organizations are there in its records, but not kept here.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Summary {
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
pub(super) struct Deleted {
    thread_id: ThreadId,
    deleted: bool,
}

#[derive(Serialize)]
pub(super) struct Messages {
    messages: Vec<Value>,
}

#[derive(Serialize)]
pub(super) struct Shared {
    state: Value,
}

#[derive(Serialize)]
pub(super) struct Events {
    events: Vec<Event>,
}

/// `GET /threads?agentId=…&limit=…&cursor=…`
pub(super) async fn list(
    State(app): State<App>,
    Query(asked): Query<Asked>,
    Extension(caller): Extension<Caller>,
) -> Result<Json<List>, ApiError> {
    let threads = app.threads().ok_or_else(ApiError::nothing_kept)?;
    let agent = asked.agent_id.as_deref().map(|name| agent_of(&app, name)).transpose()?;
    let limit = page_size(asked.limit.as_deref())?;
    let mut after = asked.cursor.as_deref().map(read_cursor).transpose()?;
    let mut list = List { threads: Vec::new(), next_cursor: None };
    let [page, pages] = LOOKED_AT;
    for _ in 0..pages {
        let found = threads.list(caller.principal().as_ref(), &ThreadPage { after, limit: page }).await?;
        let goes_on = found.len() == page;
        for thread in found {
            let next = cursor(&thread);
            if list.threads.len() == limit {
                return Ok(Json(list));
            }
            if agent.as_ref().is_none_or(|agent| agent.name() == thread.agent) {
                list.threads.push(Summary::of(thread, asked.agent_id.as_deref()));
            }
            list.next_cursor = Some(next);
        }
        if !goes_on {
            list.next_cursor = None;
            break;
        }
        after = list.next_cursor.as_deref().map(read_cursor).transpose()?;
    }
    Ok(Json(list))
}

/// `DELETE /threads/{thread}`
pub(super) async fn delete(
    State(app): State<App>,
    Path(thread): Path<String>,
    Extension(caller): Extension<Caller>,
) -> Result<Json<Deleted>, ApiError> {
    let threads = app.threads().ok_or_else(ApiError::nothing_kept)?;
    let thread_id = ThreadId::from(thread);
    threads.delete(caller.principal().as_ref(), &thread_id).await?;
    Ok(Json(Deleted { thread_id, deleted: true }))
}

/// `GET /threads/{thread}/messages`
pub(super) async fn messages(
    app: State<App>,
    thread: Path<String>,
    caller: Extension<Caller>,
) -> Result<Json<Messages>, ApiError> {
    let view = read(app, thread, caller).await?;
    Ok(Json(Messages { messages: view.current_branch().into_iter().map(shown).collect() }))
}

/// `GET /threads/{thread}/state`
pub(super) async fn state(
    app: State<App>,
    thread: Path<String>,
    caller: Extension<Caller>,
) -> Result<Json<Shared>, ApiError> {
    let view = read(app, thread, caller).await?;
    Ok(Json(Shared { state: view.thread.state.map_or_else(|| json!({}), |(_, state)| state) }))
}

/// `GET /threads/{thread}/events`: the events that restate the thread. Most of those that were sent are not stored.
pub(super) async fn events(
    app: State<App>,
    thread: Path<String>,
    caller: Extension<Caller>,
) -> Result<Json<Events>, ApiError> {
    let view = read(app, thread, caller).await?;
    let run = if view.thread.is_running { view.thread.run_id.clone() } else { RunId::random() };
    Ok(Json(Events { events: connect::snapshots(&view.thread.key.id, &run, Some(&view)) }))
}

async fn read(
    State(app): State<App>,
    Path(thread): Path<String>,
    Extension(caller): Extension<Caller>,
) -> Result<ThreadView, ApiError> {
    let threads = app.threads().ok_or_else(ApiError::nothing_kept)?;
    Ok(threads.read(caller.principal().as_ref(), &thread.into(), 0).await?)
}

/// A message as CopilotKit shows them, whose tool calls are flatter than in AG-UI.
fn shown(message: &Message) -> Value {
    let message = json!(message);
    let mut shown = serde_json::Map::new();
    for member in ["id", "role", "content", "toolCallId"] {
        if let Some(value) = message.get(member) {
            shown.insert(member.to_owned(), value.clone());
        }
    }
    if let Some(calls) = message.get("toolCalls").and_then(Value::as_array) {
        let flat = |call: &Value| json!({ "id": call["id"], "name": call["function"]["name"], "args": call["function"]["arguments"] });
        shown.insert("toolCalls".to_owned(), calls.iter().map(flat).collect());
    }
    shown.into()
}

impl Summary {
    /// An agent that was asked for by another name keeps it, so that the client knows its own threads.
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
