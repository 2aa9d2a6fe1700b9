//! A thread in the format of CopilotKit's inspector: its messages, its state, and events that restate it.

use axum::{Extension, Json, extract::State};
use serde::Serialize;
use serde_json::{Value, json};

use crate::http::openapi::refuse;
use crate::{
    http::{
        App,
        accept::{extract::Path, middleware::Caller},
        connect::snapshots,
        error::ApiError,
    },
    protocol::{Event, Message, RunId},
    store::ThreadView,
};

#[derive(Serialize)]
pub(super) struct ThreadMessages {
    messages: Vec<Value>,
}

#[derive(Serialize)]
pub(super) struct ThreadState {
    state: Value,
}

#[derive(Serialize)]
pub(super) struct RestatedEvents {
    events: Vec<Event>,
}

#[utoipa::path(
    get,
    path = "/threads/{thread}/messages",
    operation_id = "readCopilotMessages",
    tag = "CopilotKit",
    summary = "Returns the messages of a thread",
    responses(
        (status = 200, description = "The messages.", body = ref("#/components/schemas/CopilotMessages")),
        refuse::Store, refuse::Thread,
    ),
)]
pub(super) async fn thread_messages(
    app: State<App>,
    thread: Path<String>,
    caller: Extension<Caller>,
) -> Result<Json<ThreadMessages>, ApiError> {
    let view = read_thread(app, thread, caller).await?;
    Ok(Json(ThreadMessages { messages: view.current_branch().into_iter().map(inspector_message).collect() }))
}

#[utoipa::path(
    get,
    path = "/threads/{thread}/state",
    operation_id = "readCopilotState",
    tag = "CopilotKit",
    summary = "Returns the state of a thread",
    responses(
        (status = 200, description = "The state.", body = ref("#/components/schemas/CopilotState")),
        refuse::Store, refuse::Thread,
    ),
)]
pub(super) async fn thread_state(
    app: State<App>,
    thread: Path<String>,
    caller: Extension<Caller>,
) -> Result<Json<ThreadState>, ApiError> {
    let view = read_thread(app, thread, caller).await?;
    Ok(Json(ThreadState { state: view.thread.state.map_or_else(|| json!({}), |(_, state)| state) }))
}

/// Returns the events that restate the thread, because the events of its runs are not stored.
#[utoipa::path(
    get,
    path = "/threads/{thread}/events",
    operation_id = "readCopilotEvents",
    tag = "CopilotKit",
    summary = "Returns events that restate a thread",
    responses(
        (status = 200, description = "The events.", body = ref("#/components/schemas/CopilotEvents")),
        refuse::Store, refuse::Thread,
    ),
)]
pub(super) async fn thread_events(
    app: State<App>,
    thread: Path<String>,
    caller: Extension<Caller>,
) -> Result<Json<RestatedEvents>, ApiError> {
    let view = read_thread(app, thread, caller).await?;
    let run = if view.thread.is_running { view.thread.run_id.clone() } else { RunId::random() };
    Ok(Json(RestatedEvents { events: snapshots(&view.thread.key.id, &run, Some(&view)) }))
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
