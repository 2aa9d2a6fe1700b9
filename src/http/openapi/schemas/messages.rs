//! Messages, by role, with their tool calls.

use utoipa::openapi::schema::ObjectBuilder;

use crate::{
    http::openapi::schema::{
        Describe as _, Named, SchemaMembers as _, component, list_of, named, object, tagged, text, text_of,
    },
    protocol::Role,
};

const ROLES: [Role; 7] =
    [Role::Developer, Role::System, Role::Assistant, Role::User, Role::Tool, Role::Activity, Role::Reasoning];

pub(super) fn schemas() -> Vec<Named> {
    let variants = ROLES.map(|role| (role.as_str(), name(role).to_owned()));
    let mut schemas = vec![
        named("Message", tagged("role", variants)),
        named(
            "ToolCall",
            encrypted(object().has("id", text()).has("type", text_of(["function"])))
                .has("function", component("FunctionCall"))
                .may_have("metadata", object()),
        ),
        named(
            "FunctionCall",
            object().has("name", text()).has("arguments", text().says("JSON, as the model wrote it.")),
        ),
    ];
    schemas.extend(ROLES.map(|role| named(name(role), message(role))));
    schemas
}

fn name(role: Role) -> &'static str {
    match role {
        Role::Developer => "DeveloperMessage",
        Role::System => "SystemMessage",
        Role::Assistant => "AssistantMessage",
        Role::User => "UserMessage",
        Role::Tool => "ToolMessage",
        Role::Activity => "ActivityMessage",
        Role::Reasoning => "ReasoningMessage",
    }
}

fn message(role: Role) -> ObjectBuilder {
    let message = object()
        .has("role", text_of([role.as_str()]))
        .has("id", text())
        .may_have("metadata", object())
        .may_have("subagentRunId", text());
    match role {
        Role::Developer | Role::System => encrypted(message).has("content", text()).may_have("name", text()),
        Role::User => encrypted(message).has("content", component("MessageContent")).may_have("name", text()),
        Role::Assistant => encrypted(message)
            .may_have("content", text())
            .may_have("name", text())
            .may_have("toolCalls", list_of(component("ToolCall"))),
        Role::Tool => encrypted(message)
            .has("content", component("MessageContent"))
            .has("toolCallId", text())
            .may_have("error", text()),
        Role::Activity => message.has("activityType", text()).has("content", object()),
        Role::Reasoning => encrypted(message).has("content", text()),
    }
}

/// Adds what only the provider can read.
pub(super) fn encrypted(object: ObjectBuilder) -> ObjectBuilder {
    object.may_have("encryptedValue", text()).may_have("encryptedValueType", text())
}
