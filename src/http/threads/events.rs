//! `GET /threads/events`: the changes of the caller's threads, for lists that keep themselves current.

use std::sync::Arc;

use async_stream::stream;
use bytes::Bytes;
use serde::Serialize;
use utoipa::ToSchema;

use super::list::ThreadSummary;
use crate::http::{
    ApiResult, OwnThreads, refuse,
    sse_response::{frame, respond_live},
};
use agui_protocol::ThreadId;
use agui_run::{
    host::{ChangedThread, ThreadChange, ThreadEvent},
    threads::Threads,
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
    thread: Option<ThreadSummary>,
}

/// Streams the changes of the caller's threads.
///
/// A client reads the list when it has connected, and again after `missed`.
#[utoipa::path(
    get,
    path = "/threads/events",
    responses(
        (status = 200, description = "The changes from now on.", body = EventJson, content_type = "text/event-stream"),
        refuse::Streams,
    ),
)]
pub(crate) async fn follow_threads(
    OwnThreads { app, threads, caller, .. }: OwnThreads,
) -> ApiResult {
    let owner = caller.owner();
    let permit = app.take_stream(caller.principal.as_ref())?;
    let mut events = threads.follow_changes(owner.clone());
    let frames = stream! {
        let _permit = permit;
        while let Some(event) = events.next().await {
            let frames = frames(&threads, &owner, event).await;
            if !frames.is_empty() {
                yield frames;
            }
        }
    };
    Ok(respond_live(app.options.keep_alive, caller.principal.as_ref(), frames))
}

/// Returns the frames of an event, which all readers share. Earlier changes of a deleted thread
/// have no frames.
async fn frames(threads: &Threads, owner: &Arc<str>, event: ThreadEvent) -> Bytes {
    const MISSED: EventJson = EventJson::Missed { kind: MissedChanges::Missed };
    let ThreadEvent::Changes(changes) = event else { return frame(&MISSED).into() };
    let thread = threads.changed(owner, &changes).await;
    let encode = || match thread {
        ChangedThread::Unknown => frame(&MISSED),
        thread => changes
            .kinds
            .iter()
            .filter_map(|change| change_json(&changes.id, *change, thread))
            .collect(),
    };
    changes.frames.get_or_init(|| Bytes::from(encode())).clone()
}

fn change_json(
    thread_id: &ThreadId,
    change: ThreadChange,
    thread: &ChangedThread,
) -> Option<String> {
    let thread = match (change, thread) {
        (ThreadChange::Deleted, _) => None,
        (_, ChangedThread::Summary(thread)) => Some((**thread).clone().into()),
        _ => return None,
    };
    Some(frame(&EventJson::Change(Box::new(ChangeJson {
        change,
        thread_id: thread_id.clone(),
        thread,
    }))))
}
