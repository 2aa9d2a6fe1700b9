//! The log of a detached run as a durable stream.

use crate::{
    encode::SSE_MEDIA_TYPE,
    http::{STREAM_CLOSED, STREAM_CURSOR, STREAM_NEXT_OFFSET, STREAM_UP_TO_DATE},
    openapi::{
        operation::{Description, JSON, Tag},
        refusals::{FOLLOW, PARAMETER, RUNNING, STORE},
        schema::{Describe as _, component, list_of, one_of, text, text_of},
    },
};

pub(super) fn describe(method: &str, template: &str) -> Option<Description> {
    Some(match (method, template) {
        ("GET", "/threads/{thread}/runs/{run}/log") => {
            let events = || list_of(component("Event"));
            let data = one_of([events().into(), component("LogControl").into()]);
            let data = data.says("`data` events have AG-UI events, `control` events the position.");
            let read = Description::new(Tag::Runs, "readLog", "Reads a detached run as a durable stream")
                .query("offset", text(), "A `Stream-Next-Offset`, `-1` for the start, or `now`. `live` needs it.")
                .query("live", text_of(["long-poll", "sse"]), "Waits for more events.")
                .query("cursor", text(), "The `Stream-Cursor` of the response before.")
                .header("If-None-Match", text(), "The `ETag` of the client's copy.")
                .answer(
                    200,
                    "The events after the offset.",
                    &[(JSON, Some(events().into())), (SSE_MEDIA_TYPE, Some(data.into()))],
                )
                .empty(204, "A long-poll without new events.")
                .empty(304, "The client's copy is current.")
                .refuses(&[FOLLOW, PARAMETER, STORE]);
            [200, 204, 304].into_iter().fold(read, position)
        }
        ("HEAD", "/threads/{thread}/runs/{run}/log") => {
            let head = Description::new(Tag::Runs, "readLogEnd", "Returns the end of a detached run's log");
            position(head.empty(200, "The end is in the headers."), 200).refuses(&[FOLLOW, STORE])
        }
        ("GET", "/threads/{thread}/runs/{run}/recording") => {
            Description::new(Tag::Runs, "readRecording", "Returns a detached run that has ended as a recording")
                .answer(200, "The recording.", &[("application/jsonl", None)])
                .answer_header(200, "Content-Disposition", "The name of a file for the recording.")
                .refuses(&[FOLLOW, RUNNING, STORE])
        }
        _ => return None,
    })
}

fn position(description: Description, status: u16) -> Description {
    description
        .answer_header(status, STREAM_NEXT_OFFSET.as_str(), "The position after the response.")
        .answer_header(status, STREAM_CURSOR.as_str(), "For the `cursor` of the next live request.")
        .answer_header(status, STREAM_UP_TO_DATE.as_str(), "`true` if there are no more events yet.")
        .answer_header(status, STREAM_CLOSED.as_str(), "`true` if the run has ended and no event follows.")
}
