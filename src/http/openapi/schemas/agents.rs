//! Agents and the capabilities that they declare.

use utoipa::openapi::schema::ObjectBuilder;

use crate::http::openapi::schema::{
    Describe as _, Named, SchemaMembers as _, boolean, component, count, list_of, named, object, text,
};

pub(super) fn schemas() -> Vec<Named> {
    vec![
        named("AgentList", object().has("agents", list_of(component("AgentSummary")))),
        named(
            "AgentSummary",
            object()
                .has("name", text())
                .has("default", boolean().says("True for the agent that `/send-message` runs."))
                .may_have("description", text()),
        ),
        named("AgentCapabilities", capabilities()),
    ]
}

fn capabilities() -> ObjectBuilder {
    let identity = ["name", "type", "description", "version", "provider", "documentationUrl"];
    let identity = identity.iter().fold(object(), |object, name| object.may_have(name, text()));
    let tools = flags(&["supported", "parallelCalls", "clientProvided"]).may_have("items", list_of(component("Tool")));
    let subagent = object().has("name", text()).may_have("description", text());
    let multimodal = object()
        .may_have("input", flags(&["image", "audio", "video", "pdf", "file"]))
        .may_have("output", flags(&["image", "audio"]));
    let execution = flags(&["codeExecution", "sandboxed"])
        .may_have("maxIterations", count())
        .may_have("maxExecutionTime", count().says("In milliseconds."));
    let people = ["supported", "approvals", "interventions", "feedback", "interrupts", "approveWithEdits"];
    object()
        .may_have("identity", identity.may_have("metadata", object()))
        .may_have("transport", flags(&["streaming", "websocket", "httpBinary", "pushNotifications", "resumable"]))
        .may_have("tools", tools)
        .may_have("output", flags(&["structuredOutput"]).may_have("supportedMimeTypes", list_of(text())))
        .may_have("state", flags(&["snapshots", "deltas", "memory", "persistentState"]))
        .may_have(
            "multiAgent",
            flags(&["supported", "delegation", "handoffs"]).may_have("subagents", list_of(subagent)),
        )
        .may_have("reasoning", flags(&["supported", "streaming", "encrypted"]))
        .may_have("multimodal", multimodal)
        .may_have("execution", execution)
        .may_have("humanInTheLoop", flags(&people))
        .may_have("custom", object())
        .says("An absent member means that the agent does not declare it.")
}

fn flags(names: &[&str]) -> ObjectBuilder {
    names.iter().fold(object(), |object, name| object.may_have(name, boolean()))
}
