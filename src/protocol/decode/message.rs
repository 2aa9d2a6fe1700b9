//! Messages, by role, and the tool calls that they carry.

use serde::de::{MapAccess, SeqAccess};

use super::{
    diagnostics::Ignored,
    object::{Members, objects, read_object},
    path::JsonPath,
    tagged::Tagged,
    value::{FromJson, from_name, read_items},
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

/// Reads a message as [`read_object`] does, with an id first and the members of all messages last. All but activities can
/// have an encrypted value.
macro_rules! read_message {
    (not_encrypted $members:ident => $object:ident { $($own:tt)* }) => {
        read_object!($members => $object {
            required id = "id",
            $($own)*
            optional metadata = "metadata",
            optional subagent_run_id = "subagentRunId",
        })
    };
    ($members:ident => $object:ident { $($own:tt)* }) => {
        read_message!(not_encrypted $members => $object {
            $($own)*
            optional encrypted_value = "encryptedValue",
            optional encrypted_value_type = "encryptedValueType",
        })
    };
}

impl Tagged for Message {
    const TAG: &'static str = "role";
    const IGNORED: fn(&mut Ignored) -> &mut usize = |ignored| &mut ignored.messages;
    type Kind = Role;

    fn kind(tag: &str) -> Option<Role> {
        from_name(tag)
    }

    fn read<'de, A: MapAccess<'de>>(role: Role, members: Members<'_, 'de, A>) -> Result<Option<Self>, A::Error> {
        Ok(Some(match role {
            Role::Developer => Self::Developer(read_message!(members => DeveloperMessage {
                required content = "content",
                optional name = "name",
            })),
            Role::System => Self::System(read_message!(members => SystemMessage {
                required content = "content",
                optional name = "name",
            })),
            Role::Assistant => Self::Assistant(read_message!(members => AssistantMessage {
                optional content = "content",
                optional name = "name",
                optional tool_calls = "toolCalls",
            })),
            Role::User => Self::User(read_message!(members => UserMessage {
                required content = "content",
                optional name = "name",
            })),
            Role::Tool => Self::Tool(read_message!(members => ToolMessage {
                required content = "content",
                required tool_call_id = "toolCallId",
                optional error = "error",
            })),
            Role::Activity => Self::Activity(read_message!(not_encrypted members => ActivityMessage {
                required activity_type = "activityType",
                required content = "content",
            })),
            Role::Reasoning => Self::Reasoning(read_message!(members => ReasoningMessage {
                required content = "content",
            })),
        }))
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
