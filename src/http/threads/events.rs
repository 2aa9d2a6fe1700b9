//! `GET /threads/events`: the changes of the caller's threads, for lists that keep themselves current.

use async_stream::stream;
use axum::{extract::State, response::Response};
use bytes::Bytes;
use serde::Serialize;
use utoipa::ToSchema;

use super::list::ThreadSummaryJson;
use crate::{
    auth::Principal,
    http::{App, accept::extract::OwnThreads, error::ApiError, sse_response::respond_live},
    protocol::ThreadId,
    run::{ThreadChange, ThreadEvent},
    threads::{LookupError, Threads},
};

#[derive(Serialize, ToSchema)]
#[serde(untagged)]
#[schema(as = ThreadEvent)]
pub(crate) enum EventJson {
    Change(#[schema(inline)] Box<ChangeJson>),
    /// Changes are missing: read the list again.
    Missed {
        #[serde(rename = "type")]
        kind: MissedChanges,
    },
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum MissedChanges {
    Missed,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ChangeJson {
    #[serde(rename = "type")]
    change: ThreadChange,
    thread_id: ThreadId,
    /// The thread after the change, or a later one. Absent if it was deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    thread: Option<ThreadSummaryJson>,
}

/// Streams the changes of the caller's threads.
///
/// A client reads the list when it has connected, and again after `missed`.
#[utoipa::path(
    get,
    path = "/threads/events",
    operation_id = "followThreads",
    tag = "threads",
    responses(
        (status = 200, description = "The changes from now on.", body = EventJson, content_type = "text/event-stream"),
    ),
)]
pub(crate) async fn events(
    State(app): State<App>,
    OwnThreads { threads, owner }: OwnThreads,
) -> Result<Response, ApiError> {
    let mut events = threads.follow_changes(owner.as_ref());
    let frames = stream! {
        while let Some(event) = events.next().await {
            if let Some(json) = event_json(&threads, owner.as_ref(), event).await {
                yield frame(&json);
            }
        }
    };
    Ok(respond_live(app.options().keep_alive, frames))
}

/// `None` if the thread was deleted after the change, which is an event of its own.
async fn event_json(threads: &Threads, owner: Option<&Principal>, event: ThreadEvent) -> Option<EventJson> {
    const MISSED: EventJson = EventJson::Missed { kind: MissedChanges::Missed };
    let ThreadEvent::Change(thread_id, change) = event else { return Some(MISSED) };
    let thread = match change {
        ThreadChange::Deleted => None,
        _ => match threads.thread(owner, &thread_id).await {
            Ok(thread) => Some(thread.into_summary().into()),
            Err(LookupError::NoThread) => return None,
            Err(error) => {
                tracing::warn!(thread = ?thread_id, ?error, "cannot read a thread that has changed");
                return Some(MISSED);
            }
        },
    };
    Some(EventJson::Change(Box::new(ChangeJson { change, thread_id, thread })))
}

fn frame(event: &EventJson) -> Bytes {
    format!("data: {}\n\n", serde_json::to_string(event).unwrap_or_default()).into()
}
