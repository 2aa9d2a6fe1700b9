//! Starting, joining, following and cancelling runs.

use crate::{
    encode::{PROTO_MEDIA_TYPE, SSE_MEDIA_TYPE},
    http::error_code::ErrorCode,
    openapi::{
        operation::{Description, JSON, Tag},
        refusals::{AGENT, BODY, FOLLOW, LIMITS, PARAMETER, RUN, START, STATELESS, STORE, THREAD, URL},
        schema::{component, count, integer, text},
    },
};

const LAST_EVENT_ID: &str = "The number of the last event that the client has. The response continues after it.";

pub(super) fn describe(method: &str, template: &str) -> Option<Description> {
    Some(match (method, template) {
        ("POST", "/send-message") => start("runDefaultAgent", "Runs the default agent"),
        ("POST", "/agents/{agent}/send-message") => start("runAgent", "Runs an agent"),
        ("GET", "/send-message") => join("joinDefaultAgent"),
        ("GET", "/agents/{agent}/send-message") => join("joinAgent"),
        ("POST", "/threads/{thread}/connect") => Description::new(
            Tag::Runs,
            "connectThread",
            "Streams a thread and its running run",
        )
        .details(
            "Snapshots of messages and state come first, then the running detached run from its first event. An \
                     unknown thread is treated as an empty one.",
        )
        .optional_body("ConnectInput")
        .events("The thread and its run.")
        .refuses(&[BODY, STORE, &[ErrorCode::TOO_MANY_FOLLOWERS]]),
        ("GET", "/threads/{thread}/runs/{run}/events") => {
            Description::new(Tag::Runs, "followRun", "Follows a detached run")
                .query("after", count(), "The number of the last event that the client has. 0 by default.")
                .header("Last-Event-ID", count(), LAST_EVENT_ID)
                .events("The events, each with its number as `id`.")
                .empty(204, "The client has all events of an ended run.")
                .refuses(&[FOLLOW, PARAMETER, STORE])
        }
        ("POST", "/threads/{thread}/runs/{run}/cancel") => {
            Description::new(Tag::Runs, "cancelRun", "Cancels a run, on any replica")
                .json(200, "Cancellation", "The run had already ended.")
                .json(202, "Cancellation", "The run is being cancelled.")
                .refuses(&[RUN, STORE, THREAD])
        }
        _ => return None,
    })
}

fn start(id: &'static str, summary: &'static str) -> Description {
    run(Tag::Runs, id, summary)
}

/// A run, on any route that takes AG-UI's input.
pub(super) fn run(tag: Tag, id: &'static str, summary: &'static str) -> Description {
    Description::new(tag, id, summary)
        .header("Last-Event-ID", count(), LAST_EVENT_ID)
        .body("RunAgentInput")
        .events("The events of the run.")
        .empty(204, "The client has all events of an ended run, which it continues with `Last-Event-ID`.")
        .refuses(&[AGENT, BODY, FOLLOW, LIMITS, PARAMETER, START, STATELESS, STORE])
}

fn join(id: &'static str) -> Description {
    Description::new(Tag::Runs, id, "Joins a detached run, or returns a thread")
        .details("For pages with TanStack AI: `runId` joins a run, `threadId` alone returns a thread.")
        .query("runId", text(), "The run to join.")
        .query("threadId", text(), "The thread to return, or that of the run.")
        .query("offset", integer(), "With `runId`: the number of the last event that the client has; -1 for none.")
        .query("limit", integer().minimum(Some(1)).maximum(Some(200)), "About how many messages. All by default.")
        .query("before", text(), "The `cursor` of the page that follows.")
        .header("Last-Event-ID", count(), LAST_EVENT_ID)
        .answer(
            200,
            "The thread, or the events of the run.",
            &[
                (JSON, Some(component("JoinedThread").into())),
                (SSE_MEDIA_TYPE, Some(component("Event").into())),
                (PROTO_MEDIA_TYPE, None),
            ],
        )
        .empty(204, "The client has all events of an ended run.")
        .refuses(&[AGENT, FOLLOW, PARAMETER, STORE, URL])
}
