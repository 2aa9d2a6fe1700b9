//! Bodies of the routes for pages with CopilotKit.

use crate::http::openapi::schema::{
    Describe as _, Named, SchemaMembers as _, any, boolean, component, integer, list_of, map_of, named, object, text,
    text_of, text_or_null, time,
};

pub(super) fn schemas() -> Vec<Named> {
    let endpoints = ["list", "inspect", "mutations", "realtimeMetadata"];
    let endpoints = endpoints.iter().fold(object(), |object, name| object.has(name, boolean()));
    let agent = object()
        .has("name", text())
        .may_have("description", text())
        .has("capabilities", component("AgentCapabilities"));
    let single_route =
        object().has("resourceOperations", boolean()).has("threadEndpoints", component("CopilotThreadEndpoints"));
    let flags =
        ["suggestions", "audioFileTranscriptionEnabled", "a2uiEnabled", "openGenerativeUIEnabled", "telemetryDisabled"];
    let info = object()
        .has("version", text())
        .has("agents", map_of(agent).says("By name."))
        .has("mode", text_of(["sse"]))
        .may_have("intelligence", object().has("wsUrl", text()).says("The WebSocket of the lists of threads."))
        .has("threadEndpoints", component("CopilotThreadEndpoints"))
        .has("singleRoute", single_route);
    vec![
        named("CopilotInfo", flags.iter().fold(info, |info, flag| info.has(flag, boolean()))),
        named("CopilotThreadEndpoints", endpoints),
        named("CopilotEnvelope", envelope()),
        named(
            "CopilotConnectInput",
            object()
                .has("threadId", text())
                .may_have("runId", text())
                .may_have("protocolVersion", text())
                .says("The part of a `RunAgentInput` that is read."),
        ),
        named("CopilotStopInput", object().may_have("runId", text().says("The running run by default."))),
        named("CopilotStopResult", object().has("stopped", boolean()).has("message", text())),
        named(
            "CopilotThread",
            object()
                .has("id", text())
                .has("name", text_or_null())
                .has("agentId", text())
                .has("organizationId", text().says("Empty."))
                .has("createdById", text().says("Empty."))
                .has("archived", boolean())
                .has("createdAt", time())
                .has("updatedAt", time()),
        ),
        named(
            "CopilotThreadList",
            object()
                .has("threads", list_of(component("CopilotThread")))
                .has("nextCursor", text_or_null().says("`null` on the last page."))
                .has("joinCode", text_or_null().says("The topic of the list's changes.")),
        ),
        named("CopilotThreadEdit", object().may_have("name", text()).may_have("archived", boolean())),
        named("CopilotThreadDeletion", object().has("threadId", text()).has("deleted", boolean())),
        named("CopilotJoinToken", object().has("joinToken", text())),
        named("CopilotMessages", object().has("messages", list_of(inspector_message()))),
        named("CopilotState", object().has("state", any())),
        named("CopilotEvents", object().has("events", list_of(component("Event")))),
        named(
            "CopilotDebugEvent",
            object()
                .has("timestamp", integer().says("In milliseconds since 1970."))
                .has("agentId", text())
                .has("threadId", text())
                .has("runId", text())
                .has("event", component("Event")),
        ),
    ]
}

fn envelope() -> utoipa::openapi::schema::ObjectBuilder {
    let params = ["agentId", "threadId", "path", "httpMethod"];
    let params = params.iter().fold(object(), |object, name| object.may_have(name, text()));
    object()
        .has("method", text_of(["info", "agent/run", "agent/connect", "agent/stop", "resource/request"]))
        .may_have("params", params)
        .may_have("body", any().says("The body of the request in the envelope."))
}

fn inspector_message() -> utoipa::openapi::schema::ObjectBuilder {
    let call = object().has("id", text()).has("name", text()).has("args", text());
    object()
        .has("id", text())
        .has("role", text())
        .may_have("content", any())
        .may_have("toolCallId", text())
        .may_have("toolCalls", list_of(call))
}
