//! A thread in the format of CopilotKit's inspector: its messages, its state, and its events.

use axum::Json;
use serde::Serialize;
use serde_json::{Value, json, value::RawValue};
use utoipa::ToSchema;

use crate::http::{ApiResult, OwnThreads, Path, connect::snapshots, refuse};
use agui_protocol::{
    Event, FunctionCall, Message, MessageId, Role, ThreadId, ToolCall, ToolCallId,
};
use agui_store::ThreadView;

#[derive(Serialize, ToSchema)]
pub(super) struct CopilotMessages {
    messages: Vec<CopilotMessage>,
}

/// A message in the inspector's format, in which tool calls have no `function` object.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct CopilotMessage {
    id: MessageId,
    role: Role,
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<ToolCallId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_calls: Option<Vec<CopilotCall>>,
}

#[derive(Serialize, ToSchema)]
struct CopilotCall {
    id: ToolCallId,
    name: String,
    args: String,
}

#[derive(Serialize, ToSchema)]
pub(super) struct CopilotState {
    state: Value,
}

#[derive(Serialize, ToSchema)]
pub(super) struct CopilotEvents {
    #[schema(value_type = Vec<Event>)]
    events: Vec<Box<RawValue>>,
}

/// Returns the messages of a thread.
#[utoipa::path(
    get,
    path = "/threads/{thread}/messages",
    responses(
        (status = 200, description = "The messages.", body = CopilotMessages),
        refuse::Store, refuse::Thread,
    ),
)]
pub(super) async fn read_copilot_messages(
    id: Path<ThreadId>,
    own: OwnThreads,
) -> ApiResult<Json<CopilotMessages>> {
    let view = read_thread(id, own).await?;
    Ok(Json(CopilotMessages {
        messages: view.current_branch().into_iter().map(CopilotMessage::from).collect(),
    }))
}

/// Returns the state of a thread.
#[utoipa::path(
    get,
    path = "/threads/{thread}/state",
    responses(
        (status = 200, description = "The state.", body = CopilotState),
        refuse::Store, refuse::Thread,
    ),
)]
pub(super) async fn read_copilot_state(
    id: Path<ThreadId>,
    own: OwnThreads,
) -> ApiResult<Json<CopilotState>> {
    let view = read_thread(id, own).await?;
    Ok(Json(CopilotState {
        state: view.thread.state.map_or_else(|| json!({}), |(_, state)| state),
    }))
}

/// Returns the events of the newest runs whose logs are stored, at most 4 MB.
///
/// Without such a log, returns events that restate the thread.
#[utoipa::path(
    get,
    path = "/threads/{thread}/events",
    responses(
        (status = 200, description = "The events.", body = CopilotEvents),
        refuse::Store, refuse::Thread,
    ),
)]
pub(super) async fn read_copilot_events(
    Path(id): Path<ThreadId>,
    own: OwnThreads,
) -> ApiResult<Json<CopilotEvents>> {
    let mut lines = own.threads.newest_events(&own.caller.key(id.clone())).await?;
    if lines.is_empty() {
        let view = read_thread(Path(id), own).await?;
        let events = snapshots(&view.thread.key.id, &view.thread.run_id, Some(&view));
        lines.extend(events.iter().filter_map(|event| serde_json::to_string(event).ok()));
    } else if let Some(urls) = own.urls() {
        lines
            .iter_mut()
            .for_each(|line| *line = urls.line(line).unwrap_or_else(|| std::mem::take(line)));
    }
    // A line that is no JSON is damaged, and was reported when it was read.
    let events = lines.into_iter().filter_map(|line| RawValue::from_string(line).ok()).collect();
    Ok(Json(CopilotEvents { events }))
}

async fn read_thread(Path(id): Path<ThreadId>, own: OwnThreads) -> ApiResult<ThreadView> {
    let mut view = own.threads.read(&own.caller.key(id)).await?;
    own.present(view.nodes.iter_mut().map(|node| &mut node.message));
    Ok(view)
}

impl From<&Message> for CopilotMessage {
    fn from(message: &Message) -> Self {
        let (tool_call_id, calls) = match message {
            Message::Tool(result) => (Some(result.tool_call_id.clone()), None),
            Message::Assistant(message) => (None, message.tool_calls.as_ref()),
            _ => (None, None),
        };
        let flat = |call: &ToolCall| {
            let FunctionCall { name, arguments } = call.function.clone();
            CopilotCall { id: call.id.clone(), name, args: arguments }
        };
        Self {
            id: message.id().clone(),
            role: message.role(),
            content: json!(message).get("content").cloned(),
            tool_call_id,
            tool_calls: calls.map(|calls| calls.iter().map(flat).collect()),
        }
    }
}
