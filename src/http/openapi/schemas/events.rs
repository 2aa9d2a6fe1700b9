//! The AG-UI events. A new event does not compile before it has its members here.

use utoipa::openapi::schema::{AnyOfBuilder, ObjectBuilder};

use super::messages::encrypted;
use crate::{
    http::openapi::schema::{
        AnySchema, Describe as _, Named, SchemaMembers as _, any, boolean, component, count, integer, list_of, named,
        object, one_of, tagged, text, text_of,
    },
    observe::metrics::ERROR_CODES,
    protocol::EventType,
};

pub(super) fn schemas() -> Vec<Named> {
    let variants = EventType::ALL.iter().map(|event| (event.as_str(), name(*event)));
    let mut schemas = vec![named("Event", tagged("type", variants).says("An event of AG-UI 1.1."))];
    schemas.extend(EventType::ALL.iter().map(|event| (name(*event), with_base(*event).into())));
    schemas.extend([
        named("RunOutcome", run_outcome()),
        named("SubagentOutcome", subagent_outcome()),
        named("RunErrorCode", run_error_code()),
        named("JsonPatch", list_of(patch_operation()).says("A JSON Patch (RFC 6902).")),
        named("TokenUsage", token_usage()),
    ]);
    schemas
}

fn name(event: EventType) -> String {
    format!("{event:?}Event")
}

fn with_base(event: EventType) -> ObjectBuilder {
    members(event)
        .has("type", text_of([event.as_str()]))
        .may_have("timestamp", integer().says("In milliseconds since 1970."))
        .may_have("rawEvent", any().says("The event of the provider."))
        .may_have("metadata", object())
}

fn members(event: EventType) -> ObjectBuilder {
    let of_message = || attributed().has("messageId", text());
    let of_call = || attributed().has("toolCallId", text());
    let of_run = || object().has("threadId", text()).has("runId", text());
    match event {
        EventType::TextMessageStart => of_message().may_have("role", text_role()).may_have("name", text()),
        EventType::TextMessageContent => of_message().has("delta", text()),
        EventType::TextMessageEnd => of_message(),
        EventType::TextMessageChunk => attributed()
            .may_have("messageId", text())
            .may_have("role", text_role())
            .may_have("delta", text())
            .may_have("name", text()),
        EventType::ToolCallStart => of_call().has("toolCallName", text()).may_have("parentMessageId", text()),
        EventType::ToolCallArgs => of_call().has("delta", text().says("A part of the arguments, which are JSON.")),
        EventType::ToolCallEnd => of_call(),
        EventType::ToolCallChunk => attributed()
            .may_have("toolCallId", text())
            .may_have("toolCallName", text())
            .may_have("parentMessageId", text())
            .may_have("delta", text()),
        EventType::ToolCallResult => of_message()
            .has("toolCallId", text())
            .has("content", component("MessageContent"))
            .may_have("role", text_of(["tool"])),
        EventType::StateSnapshot => attributed().has("snapshot", any()),
        EventType::StateDelta => attributed().has("delta", component("JsonPatch")),
        EventType::MessagesSnapshot => object().has("messages", list_of(component("Message"))),
        EventType::ActivitySnapshot => of_message()
            .has("activityType", text())
            .has("content", object())
            .may_have("replace", boolean().says("False keeps the activity that the client has. True by default.")),
        EventType::ActivityDelta => of_message().has("activityType", text()).has("patch", component("JsonPatch")),
        EventType::Raw => attributed().has("event", any()).may_have("source", text()),
        EventType::Custom => attributed().has("name", text()).has("value", any()),
        EventType::RunStarted => of_run()
            .may_have("protocolVersion", text())
            .may_have("parentRunId", text())
            .may_have("input", component("RunAgentInput")),
        EventType::RunFinished => of_run()
            .may_have("result", any())
            .may_have("outcome", component("RunOutcome"))
            .may_have("usage", list_of(component("TokenUsage"))),
        EventType::RunError => object()
            .has("message", text())
            .may_have("code", component("RunErrorCode"))
            .may_have("usage", list_of(component("TokenUsage"))),
        EventType::StepStarted | EventType::StepFinished => attributed().has("stepName", text()),
        EventType::ReasoningStart | EventType::ReasoningMessageEnd | EventType::ReasoningEnd => of_message(),
        EventType::ReasoningMessageStart => of_message().has("role", text_of(["reasoning"])),
        EventType::ReasoningMessageContent => of_message().has("delta", text()),
        EventType::ReasoningMessageChunk => attributed().may_have("messageId", text()).may_have("delta", text()),
        EventType::ReasoningEncryptedValue => encrypted(attributed())
            .has("subtype", text_of(["message", "tool-call"]))
            .has("entityId", text().says("The id of the message or the call."))
            .required("encryptedValue"),
        EventType::SubagentStarted => of_subagent()
            .has("name", text())
            .may_have("description", text())
            .may_have("parentSubagentRunId", text())
            .may_have("parentToolCallId", text())
            .may_have("parentMessageId", text()),
        EventType::SubagentFinished => {
            of_subagent().may_have("result", any()).may_have("outcome", component("SubagentOutcome"))
        }
        EventType::SubagentError => of_subagent().has("message", text()).may_have("code", text()),
    }
}

/// An event of an agent or of one of its subagents.
fn attributed() -> ObjectBuilder {
    object().may_have("subagentRunId", text().says("The subagent. Absent for the agent itself."))
}

fn of_subagent() -> ObjectBuilder {
    object().has("subagentRunId", text())
}

fn text_role() -> ObjectBuilder {
    text_of(["developer", "system", "assistant", "user"])
}

fn outcome(kind: &str) -> ObjectBuilder {
    object().has("type", text_of([kind]))
}

fn run_outcome() -> impl Into<AnySchema> {
    let pending = list_of(text()).says("Calls of the client's tools, which wait for their results.");
    one_of([
        outcome("success").may_have("pendingToolCallIds", pending).into(),
        outcome("interrupt").has("interrupts", list_of(component("Interrupt"))).into(),
        outcome("cancelled").into(),
    ])
}

fn subagent_outcome() -> impl Into<AnySchema> {
    let suspended = outcome("suspended").may_have("interruptIds", list_of(text()));
    one_of([outcome("success").into(), suspended.into()])
}

fn run_error_code() -> impl Into<AnySchema> {
    let own = text_of(ERROR_CODES.iter().copied()).says("The codes of this server.");
    let others = text().says("Codes that an agent or the endpoint of a remote agent chooses.");
    AnyOfBuilder::new().item(own).item(others)
}

fn patch_operation() -> impl Into<AnySchema> {
    let operation = |names: &[&str]| object().has("op", text_of(names.iter().copied())).has("path", text());
    one_of([
        operation(&["add", "replace", "test"]).has("value", any()).into(),
        operation(&["remove"]).into(),
        operation(&["move", "copy"]).has("from", text()).into(),
    ])
}

fn token_usage() -> ObjectBuilder {
    let counts = ["input", "output", "total", "reasoning", "cachedInput", "cacheWriteInput"];
    let usage = object().may_have("provider", text()).may_have("model", text());
    counts.iter().fold(usage, |usage, kind| usage.may_have(&format!("{kind}Tokens"), count()))
}
