//! Messages, by role, and the tool calls that they carry.

use serde::de::{MapAccess, SeqAccess};

use super::{
    object::{Members, objects, read_object},
    path::JsonPath,
    tagged::Tagged,
    value::{FromJson, read_items},
};
use crate::protocol::{
    ActivityMessage, AssistantMessage, DeveloperMessage, FunctionCall, Message, Messages, ReasoningMessage, Role,
    SystemMessage, ToolCall, ToolMessage, UserMessage,
};

impl<'de> FromJson<'de> for Messages {
    const EXPECTED: &'static str = "an array";
    fn from_list<A: SeqAccess<'de>>(path: JsonPath<'_>, items: A) -> Result<Option<Self>, A::Error> {
        // Avoids moving a long history as its list grows. Messages are rarely shorter than 200 bytes; the maximum bounds
        // the memory that a body without messages can claim.
        let mut list = Vec::with_capacity((path.diagnostics.body_len() / 200).min(2048));
        read_items(path, items, |message: Option<Message>| list.extend(message))?;
        Ok(Some(list.into()))
    }
}

impl Tagged for Message {
    const TAG: &'static str = "role";
    type Kind = Role;

    fn kind(tag: &str) -> Option<Role> {
        Role::from_wire(tag)
    }

    fn read<'de, A: MapAccess<'de>>(role: Role, members: Members<'_, 'de, A>) -> Result<Option<Self>, A::Error> {
        Ok(Some(match role {
            Role::Developer => Self::Developer(read_object!(members => DeveloperMessage {
                required id = "id",
                required content = "content",
                optional name = "name",
                optional encrypted_value = "encryptedValue",
                optional encrypted_value_type = "encryptedValueType",
                optional metadata = "metadata",
                optional subagent_run_id = "subagentRunId",
            })),
            Role::System => Self::System(read_object!(members => SystemMessage {
                required id = "id",
                required content = "content",
                optional name = "name",
                optional encrypted_value = "encryptedValue",
                optional encrypted_value_type = "encryptedValueType",
                optional metadata = "metadata",
                optional subagent_run_id = "subagentRunId",
            })),
            Role::Assistant => Self::Assistant(read_object!(members => AssistantMessage {
                required id = "id",
                optional content = "content",
                optional name = "name",
                optional tool_calls = "toolCalls",
                optional encrypted_value = "encryptedValue",
                optional encrypted_value_type = "encryptedValueType",
                optional metadata = "metadata",
                optional subagent_run_id = "subagentRunId",
            })),
            Role::User => Self::User(read_object!(members => UserMessage {
                required id = "id",
                required content = "content",
                optional name = "name",
                optional encrypted_value = "encryptedValue",
                optional encrypted_value_type = "encryptedValueType",
                optional metadata = "metadata",
                optional subagent_run_id = "subagentRunId",
            })),
            Role::Tool => Self::Tool(read_object!(members => ToolMessage {
                required id = "id",
                required content = "content",
                required tool_call_id = "toolCallId",
                optional error = "error",
                optional encrypted_value = "encryptedValue",
                optional encrypted_value_type = "encryptedValueType",
                optional metadata = "metadata",
                optional subagent_run_id = "subagentRunId",
            })),
            Role::Activity => Self::Activity(read_object!(members => ActivityMessage {
                required id = "id",
                required activity_type = "activityType",
                required content = "content",
                optional metadata = "metadata",
                optional subagent_run_id = "subagentRunId",
            })),
            Role::Reasoning => Self::Reasoning(read_object!(members => ReasoningMessage {
                required id = "id",
                required content = "content",
                optional encrypted_value = "encryptedValue",
                optional encrypted_value_type = "encryptedValueType",
                optional metadata = "metadata",
                optional subagent_run_id = "subagentRunId",
            })),
        }))
    }

    fn note_ignored(path: JsonPath<'_>, tag: &str) {
        path.diagnostics.ignore_message(path, tag);
    }
}

objects! {
    ToolCall {
        required id = "id",
        required kind = "type",
        required function = "function",
        optional encrypted_value = "encryptedValue",
        optional encrypted_value_type = "encryptedValueType",
        optional metadata = "metadata",
    }
    FunctionCall {
        required name = "name",
        required arguments = "arguments",
    }
}
