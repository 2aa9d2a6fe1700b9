//! The routes for pages with CopilotKit.

use super::{runs::run, threads::paged};
use crate::{
    encode::SSE_MEDIA_TYPE,
    http::error_code::ErrorCode,
    openapi::{
        operation::{Description, JSON, Tag},
        refusals::{
            AGENT, BODY, EDIT, FOLLOW, LIMITS, LOOPBACK, MESSAGE, PARAMETER, SHUTDOWN, SOCKET, START, STATELESS, STORE,
            THREAD, URL,
        },
        schema::{any, component, text, text_of},
    },
};

pub(super) fn describe(method: &str, template: &str) -> Option<Description> {
    let path = template.strip_prefix("/copilotkit")?;
    let route = |id, summary| Description::new(Tag::CopilotKit, id, summary);
    Some(match (method, path) {
        ("POST", "" | "/") => envelope(),
        ("GET", "/info") => route("readCopilotInfo", "Lists the agents, and the features that pages may use").json(
            200,
            "CopilotInfo",
            "The agents and features.",
        ),
        ("GET", "/cpk-debug-events") => route("followCopilotRuns", "Streams the events of the caller's runs")
            .stream("CopilotDebugEvent", "The events from now on.")
            .refuses(&[LOOPBACK, SHUTDOWN]),
        ("POST", "/agent/{agent}/run") => run(Tag::CopilotKit, "runCopilotAgent", "Runs an agent"),
        ("POST", "/agent/{agent}/connect") => route("connectCopilotThread", "Streams a thread and its running run")
            .body("CopilotConnectInput")
            .events("The thread and its run. Empty for an unknown thread.")
            .refuses(&[AGENT, BODY, STORE, &[ErrorCode::TOO_MANY_FOLLOWERS]]),
        ("POST", "/agent/{agent}/suggest") => route("suggest", "Runs an agent, and stores nothing")
            .body("RunAgentInput")
            .events("The events of the run.")
            .refuses(&[AGENT, BODY, LIMITS, START, STORE]),
        ("POST", "/agent/{agent}/stop/{thread}") => route("stopCopilotRun", "Cancels the running run of a thread")
            .optional_body("CopilotStopInput")
            .json(200, "CopilotStopResult", "Whether a run is being cancelled.")
            .refuses(&[AGENT, BODY, STATELESS, STORE]),
        ("GET", "/threads") => paged(route("listCopilotThreads", "Lists the caller's threads"))
            .query("agentId", text(), "Only threads of this agent.")
            .query("includeArchived", text_of(["true", "false"]), "`false` by default.")
            .query("cursor", text(), "The `nextCursor` of the page before.")
            .json(200, "CopilotThreadList", "A page of threads.")
            .refuses(&[AGENT, PARAMETER, STORE, URL]),
        ("POST", "/threads/subscribe") => route("subscribe", "Returns a token for the WebSocket").json(
            200,
            "CopilotJoinToken",
            "The token, which is valid for one hour.",
        ),
        ("PATCH", "/threads/{thread}") => route("editCopilotThread", "Renames or archives a thread")
            .body("CopilotThreadEdit")
            .json(200, "CopilotThread", "The changed thread.")
            .refuses(&[BODY, EDIT, MESSAGE, STORE, THREAD]),
        ("DELETE", "/threads/{thread}") => route("deleteCopilotThread", "Deletes a thread")
            .json(200, "CopilotThreadDeletion", "The thread is deleted.")
            .refuses(&[STORE, THREAD]),
        ("POST", "/threads/{thread}/archive") => route("archiveCopilotThread", "Archives a thread")
            .json(200, "CopilotThread", "The archived thread.")
            .refuses(&[EDIT, STORE, THREAD]),
        ("GET", "/threads/{thread}/messages") => route("readCopilotMessages", "Returns the messages of a thread")
            .json(200, "CopilotMessages", "The messages.")
            .refuses(&[STORE, THREAD]),
        ("GET", "/threads/{thread}/state") => route("readCopilotState", "Returns the state of a thread")
            .json(200, "CopilotState", "The state.")
            .refuses(&[STORE, THREAD]),
        ("GET", "/threads/{thread}/events") => route("readCopilotEvents", "Returns events that restate a thread")
            .json(200, "CopilotEvents", "The events.")
            .refuses(&[STORE, THREAD]),
        ("GET", "/socket/websocket") => socket(),
        _ => return None,
    })
}

/// It answers as the route of the inner request does.
fn envelope() -> Description {
    Description::new(Tag::CopilotKit, "sendEnvelope", "Sends a request in an envelope to one of the other routes")
        .body("CopilotEnvelope")
        .answer(
            200,
            "The answer of the other route.",
            &[(JSON, Some(any().into())), (SSE_MEDIA_TYPE, Some(component("Event").into()))],
        )
        .empty(204, "The answer of the other route.")
        .refuses(&[AGENT, BODY, EDIT, FOLLOW, LIMITS, MESSAGE, PARAMETER, START, STATELESS, STORE, URL])
        .refuses(&[&[ErrorCode::NOT_FOUND, ErrorCode::METHOD_NOT_ALLOWED]])
}

fn socket() -> Description {
    Description::new(Tag::CopilotKit, "openSocket", "Reports changes of the caller's threads through a WebSocket")
        .query("join_token", text(), "The token of `POST /threads/subscribe`. Needed with authentication.")
        .empty(101, "The channels of the Phoenix framework.")
        .refuses(&[SOCKET, URL])
}
