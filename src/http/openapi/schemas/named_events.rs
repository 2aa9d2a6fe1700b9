//! Requests and events of the named-event endpoints.

use utoipa::openapi::schema::ObjectBuilder;

use crate::http::openapi::schema::{
    AnySchema, Describe as _, Named, SchemaMembers as _, boolean, component, list_of, named, object, one_of, text,
    text_of, text_or_null,
};

/// The decisions about an action, and about an agent's work.
const DECISIONS: [&str; 5] = ["approve", "edit", "reject", "accepted", "feedback"];

pub(super) fn schemas() -> Vec<Named> {
    vec![
        named(
            "NamedEventRequest",
            object()
                .has("messages", list_of(component("NamedEventMessage")).min_items(Some(1)).says("The new messages."))
                .may_have("thread_id", text_or_null().says("Without it, a new thread begins."))
                .may_have(
                    "enable_deep_thinking",
                    boolean().says("Makes the model reason before it answers. The agent's options decide by default."),
                ),
        ),
        named("NamedEventMessage", message()),
        named("NamedEventBlock", block()),
        named("NamedEventDecision", decision()),
        named("NamedEventInterrupt", interrupt()),
        named("NamedEvent", event()),
    ]
}

fn message() -> ObjectBuilder {
    let decisions = object().has("decisions", list_of(component("NamedEventDecision")));
    let content = one_of([text().into(), list_of(component("NamedEventBlock")).into(), decisions.into()]);
    object()
        .may_have("id", text_or_null())
        .has("role", text_of(["user", "human", "assistant", "ai", "system"]))
        .has("content", content.says("A text, blocks, or a person's decisions about the open interrupts."))
}

fn block() -> impl Into<AnySchema> {
    let media = object()
        .has("type", text_of(["image", "audio", "video", "file"]))
        .may_have("url", text())
        .may_have("data", text().says("The bytes in base64."))
        .may_have("mime_type", text().says("Required with `data`."));
    one_of([
        object().has("type", text_of(["text"])).has("text", text()).into(),
        object().has("type", text_of(["reasoning"])).has("reasoning", text()).into(),
        media.into(),
    ])
}

fn decision() -> ObjectBuilder {
    object()
        .has("actionId", text())
        .has("type", text_of(DECISIONS))
        .may_have("args", object().says("The arguments to change, as a JSON merge patch; required with `edit`."))
        .may_have("reason", text())
}

fn interrupt() -> ObjectBuilder {
    let option = object().has("label", text()).has("value", text_of(DECISIONS));
    let action =
        object().has("actionId", text()).has("name", text()).has("arguments", object()).may_have("description", text());
    let review = object().has("action_name", text()).has("allowedDecisions", list_of(text_of(DECISIONS)));
    let step = object().has("description", text()).has("status", text());
    let context = object().may_have("steps", list_of(step)).may_have("schema", object());
    object()
        .has("id", text())
        .may_have("thread_id", text())
        .has("content", text())
        .has("finish_reason", text_of(["interrupt"]))
        .has("options", list_of(option))
        .may_have("action_requests", list_of(action))
        .may_have("review_configs", list_of(review))
        .may_have("context", context)
}

/// The data of an event. Its name is in the line `event:`.
fn event() -> impl Into<AnySchema> {
    let of_call = || object().has("toolCallId", text());
    let of_reasoning = || object().has("messageId", text());
    let told = || object().has("type", text()).has("message", text()).may_have("thread_id", text());
    let events: [(&str, ObjectBuilder); 12] = [
        ("message", object().has("content", text()).has("thread_id", text()).has("agent", text())),
        ("status", told().may_have("run_id", text())),
        ("error", told()),
        ("tool_call_start", of_call().has("toolCallName", text()).has("thread_id", text())),
        ("tool_call_args", of_call().has("delta", text())),
        ("tool_call_end", of_call()),
        ("tool_result", of_call().has("content", text()).has("role", text_of(["tool"]))),
        ("reasoning_start", of_reasoning()),
        ("reasoning_message_start", of_reasoning().has("role", text_of(["assistant"]))),
        ("reasoning_message_content", of_reasoning().has("delta", text())),
        ("reasoning_message_end", of_reasoning()),
        ("reasoning_end", of_reasoning()),
    ];
    // Some events have members of others, so a stream's data fits more than one.
    let events = events.map(|(name, data)| data.title(Some(name)));
    let events = events.into_iter().fold(utoipa::openapi::schema::AnyOfBuilder::new(), |any, event| any.item(event));
    events.item(component("NamedEventInterrupt"))
}
