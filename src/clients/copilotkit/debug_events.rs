//! `GET /cpk-debug-events`: the events of the caller's runs on this server, for CopilotKit's inspector.
//!
//! Without authentication these are the events of all runs, so only processes of this machine get them. A proxy on this
//! machine that adds no header of `http/accept/serve.rs` has to block the route.

use async_stream::stream;
use axum::{
    Extension,
    extract::{Request, State},
};
use bytes::Bytes;
use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::http::{
    ApiError, ApiResult, App, Caller, ClientFiles, is_from_this_machine, refuse, sse_response,
};
use agui_protocol::{Event, RunId, ThreadId};
use agui_run::host::{DebugEvent, StartError};
use agui_store::host::now;

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct CopilotDebugEvent<'a> {
    /// In milliseconds since 1970.
    timestamp: i64,
    agent_id: &'a str,
    thread_id: &'a ThreadId,
    run_id: &'a RunId,
    #[schema(value_type = Event)]
    event: &'a RawValue,
}

/// Streams the events of the caller's runs.
#[utoipa::path(
    get,
    path = "/cpk-debug-events",
    responses(
        (status = 200, description = "The events from now on.", body = CopilotDebugEvent<'_>, content_type = "text/event-stream"),
        refuse::Loopback, refuse::Shutdown, refuse::Streams,
    ),
)]
pub(super) async fn follow_copilot_runs(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    request: Request,
) -> ApiResult {
    let principal = caller.principal.as_ref();
    if principal.is_none() && !is_from_this_machine(&request) {
        return Err(ApiError::LoopbackOnly("the events of all runs"));
    }
    let files = ClientFiles::for_caller(&app, &caller).await;
    let permit = app.take_stream(principal)?;
    let Some(mut events) = app.runs.debug_events(principal) else {
        return Err(StartError::ShuttingDown.into());
    };
    let frames = stream! {
        let _permit = permit;
        while let Some(event) = events.next().await {
            yield frame(&event, files.as_ref());
        }
    };
    Ok(sse_response::respond_live(app.options.keep_alive, principal, frames))
}

fn frame(debug: &DebugEvent, files: Option<&ClientFiles>) -> Bytes {
    let DebugEvent { run, event, .. } = debug;
    let presented = files.and_then(|files| files.urls().line(event.get()));
    let presented = presented.and_then(|json| RawValue::from_string(json).ok());
    let event = presented.as_ref().unwrap_or(event);
    let envelope = CopilotDebugEvent {
        timestamp: now(),
        agent_id: &run.agent,
        thread_id: &run.thread_id,
        run_id: &run.run_id,
        event,
    };
    sse_response::frame(&envelope).into()
}
