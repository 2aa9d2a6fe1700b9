//! The messages of a conversation, by role.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{
    ContentPart, JsonObject, MessageContent, MessageId, Metadata, SubagentRunId, ToolCallId,
    wire_struct::wire_struct,
};

/// The author of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The application's developer.
    Developer,
    /// The system.
    System,
    /// The agent.
    Assistant,
    /// The user of the application.
    User,
    /// A tool that answers a call.
    Tool,
    /// Structured progress for the user interface; not sent to models.
    Activity,
    /// Reasoning of the model.
    Reasoning,
}

impl Role {
    /// Returns the role as it is written in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Developer => "developer",
            Self::System => "system",
            Self::Assistant => "assistant",
            Self::User => "user",
            Self::Tool => "tool",
            Self::Activity => "activity",
            Self::Reasoning => "reasoning",
        }
    }
}

/// Any message of a conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "role", rename_all = "lowercase")]
pub enum Message {
    /// Instructions from the application's developer.
    Developer(#[schema(inline)] DeveloperMessage),
    /// Instructions from the system.
    System(#[schema(inline)] SystemMessage),
    /// Text and tool calls of the agent.
    Assistant(#[schema(inline)] AssistantMessage),
    /// Text or parts from the user.
    User(#[schema(inline)] UserMessage),
    /// The result of a tool call.
    Tool(#[schema(inline)] ToolMessage),
    /// Structured progress.
    Activity(#[schema(inline)] ActivityMessage),
    /// Reasoning of the model.
    Reasoning(#[schema(inline)] ReasoningMessage),
}

/// Evaluates an expression with the message of a [`Message`], for members that all roles have, or all but activities.
macro_rules! of_any_role {
    ($message:expr, $of_role:ident => $result:expr) => {
        of_any_role!($message, $of_role => $result, activity => $result)
    };
    ($message:expr, $of_role:ident => $result:expr, activity => $of_activity:expr) => {
        match $message {
            Message::Developer($of_role) => $result,
            Message::System($of_role) => $result,
            Message::Assistant($of_role) => $result,
            Message::User($of_role) => $result,
            Message::Tool($of_role) => $result,
            Message::Activity($of_role) => {
                let _ = $of_role;
                $of_activity
            }
            Message::Reasoning($of_role) => $result,
        }
    };
}

impl Message {
    /// Creates a user message.
    pub fn user(id: impl Into<MessageId>, content: impl Into<MessageContent>) -> Self {
        Self::User(UserMessage::new(id, content))
    }

    /// Creates an assistant message of plain text.
    pub fn assistant(id: impl Into<MessageId>, content: impl Into<String>) -> Self {
        Self::Assistant(AssistantMessage {
            content: Some(content.into()),
            ..AssistantMessage::new(id)
        })
    }

    /// Returns the message's identifier.
    pub fn id(&self) -> &MessageId {
        of_any_role!(self, m => &m.id)
    }

    /// Returns whether the message is of the role system or developer.
    pub fn is_instruction(&self) -> bool {
        matches!(self, Self::System(_) | Self::Developer(_))
    }

    /// Returns the author of the message.
    pub fn role(&self) -> Role {
        match self {
            Self::Developer(_) => Role::Developer,
            Self::System(_) => Role::System,
            Self::Assistant(_) => Role::Assistant,
            Self::User(_) => Role::User,
            Self::Tool(_) => Role::Tool,
            Self::Activity(_) => Role::Activity,
            Self::Reasoning(_) => Role::Reasoning,
        }
    }

    /// Returns the tool calls of an assistant message, and an empty slice for other roles.
    pub fn tool_calls(&self) -> &[ToolCall] {
        match self {
            Self::Assistant(m) => m.tool_calls(),
            _ => &[],
        }
    }

    /// Returns the parts of a content, and an empty slice for a text.
    #[doc(hidden)]
    pub fn parts(&self) -> &[ContentPart] {
        match self {
            Self::User(UserMessage { content: MessageContent::Parts(parts), .. })
            | Self::Tool(ToolMessage { content: MessageContent::Parts(parts), .. }) => parts,
            _ => &[],
        }
    }

    /// Returns the parts of such a content for changing them.
    #[doc(hidden)]
    pub fn parts_mut(&mut self) -> &mut [ContentPart] {
        match self {
            Self::User(UserMessage { content: MessageContent::Parts(parts), .. })
            | Self::Tool(ToolMessage { content: MessageContent::Parts(parts), .. }) => parts,
            _ => &mut [],
        }
    }

    /// Changes the identifier.
    pub fn set_id(&mut self, id: MessageId) {
        of_any_role!(self, m => m.id = id)
    }

    /// Returns the display name of the author.
    pub fn name(&self) -> Option<&str> {
        match self {
            Self::Developer(m) => m.name.as_deref(),
            Self::System(m) => m.name.as_deref(),
            Self::Assistant(m) => m.name.as_deref(),
            Self::User(m) => m.name.as_deref(),
            Self::Tool(_) | Self::Activity(_) | Self::Reasoning(_) => None,
        }
    }

    /// Returns the subagent invocation that the message belongs to; `None` is the parent agent.
    pub fn subagent_run_id(&self) -> Option<&SubagentRunId> {
        of_any_role!(self, m => m.subagent_run_id.as_ref())
    }

    /// Returns the subagent invocation for changing it.
    #[doc(hidden)]
    pub fn subagent_run_id_mut(&mut self) -> &mut Option<SubagentRunId> {
        of_any_role!(self, m => &mut m.subagent_run_id)
    }

    /// Makes it a message of the parent agent.
    #[doc(hidden)]
    pub fn without_subagent(mut self) -> Self {
        of_any_role!(&mut self, m => m.subagent_run_id = None);
        self
    }

    /// Returns the metadata.
    pub fn metadata(&self) -> Option<&Metadata> {
        of_any_role!(self, m => m.metadata.as_ref())
    }

    /// Returns the metadata for changing it.
    pub fn metadata_mut(&mut self) -> &mut Option<Metadata> {
        of_any_role!(self, m => &mut m.metadata)
    }

    /// Returns the provider's encrypted value and its type. Activity messages cannot have them.
    pub fn encrypted_value(&self) -> (Option<&str>, Option<&str>) {
        of_any_role!(
            self, m => (m.encrypted_value.as_deref(), m.encrypted_value_type.as_deref()), activity => (None, None)
        )
    }

    /// Returns the provider's encrypted value and its type for changing them; `None` for activity messages, which cannot
    /// have one.
    pub fn encrypted_value_mut(&mut self) -> Option<(&mut Option<String>, &mut Option<String>)> {
        of_any_role!(self, m => Some((&mut m.encrypted_value, &mut m.encrypted_value_type)), activity => None)
    }
}

/// Defines a message struct as [`wire_struct!`] does: with an id first and the members of all
/// messages last. All messages except activities can have an encrypted value.
macro_rules! message {
    (@define [$($encrypted:tt)*] $(#[$meta:meta])* $name:ident { $($required:tt)* }
        $(lenient { $($lenient:tt)* })? $(optional { $($optional:tt)* })?
    ) => {
        wire_struct! {
            decoded
            $(#[$meta])*
            $name {
                /// Unique within the thread.
                id: MessageId,
                $($required)*
            } $(lenient { $($lenient)* })? optional {
                $($($optional)*)?
                $($encrypted)*
                /// Further data, open by key.
                metadata: Metadata,
                /// The subagent invocation that the message belongs to. Absent for the parent agent.
                subagent_run_id: SubagentRunId,
            }
        }
    };
    (not_encrypted $($message:tt)*) => { message!(@define [] $($message)*); };
    ($($message:tt)*) => {
        message!(@define [
            /// Opaque data of the provider, to be sent back to it unchanged.
            encrypted_value: String,
            /// The provider's name for the kind of encrypted value.
            encrypted_value_type: String,
        ] $($message)*);
    };
}

message! {
    /// Instructions from the application's developer.
    DeveloperMessage {
        /// The instructions.
        content: String,
    } optional {
        /// A display name for the author.
        name: String,
    }
}

message! {
    /// Instructions from the system.
    SystemMessage {
        /// The instructions.
        content: String,
    } optional {
        /// A display name for the author.
        name: String,
    }
}

message! {
    /// Text and tool calls of the agent.
    AssistantMessage {} optional {
        /// The text; absent if the message has tool calls alone.
        content: String,
        /// A display name for the author.
        name: String,
        /// The tool calls. Clients distinguish an absent list from an empty one.
        tool_calls: Vec<ToolCall>,
    }
}

impl AssistantMessage {
    /// Returns the tool calls; an absent list is empty.
    pub fn tool_calls(&self) -> &[ToolCall] {
        self.tool_calls.as_deref().unwrap_or_default()
    }
}

message! {
    /// Text or parts from the user.
    UserMessage {
        /// Text or parts.
        content: MessageContent,
    } optional {
        /// A display name for the author.
        name: String,
    }
}

message! {
    /// The result of a tool call.
    ToolMessage {
        /// The answered call.
        tool_call_id: ToolCallId,
    } lenient {
        /// Text or parts.
        content: MessageContent,
    } optional {
        /// The error of a tool that failed, in addition to the content.
        error: String,
    }
}

message! {
    not_encrypted
    /// Structured progress within the conversation, for the user interface. It is not sent to models.
    ActivityMessage {
        /// The type of activity, named by its producer.
        activity_type: String,
        /// The activity, open by key.
        #[schema(value_type = Object)]
        content: JsonObject,
    }
}

message! {
    /// Reasoning of the model.
    ReasoningMessage {
        /// The reasoning text.
        content: String,
    }
}

wire_struct! {
    decoded own_new
    /// A tool call in an assistant message.
    ToolCall {
        /// The answering tool message refers to it.
        id: ToolCallId,
        /// Always a function.
        #[serde(rename = "type")]
        kind: ToolCallKind,
        /// The tool and the arguments.
        function: FunctionCall,
    } optional {
        /// Opaque data of the provider, to be sent back to it unchanged.
        encrypted_value: String,
        /// The provider's name for the kind of encrypted value.
        encrypted_value_type: String,
        /// Further data, open by key.
        metadata: Metadata,
    }
}

impl ToolCall {
    /// Creates a function call. `arguments` is JSON text as the model wrote it.
    pub fn new(
        id: impl Into<ToolCallId>,
        name: impl Into<String>,
        arguments: impl Into<String>,
    ) -> Self {
        Self::bare(id, ToolCallKind::Function, FunctionCall::new(name, arguments))
    }
}

/// The type of a tool call; the protocol has one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum ToolCallKind {
    /// A function.
    #[default]
    Function,
}

wire_struct! {
    decoded
    /// The name and the arguments of a tool call.
    #[derive(Eq)]
    FunctionCall {
        /// The name of the tool.
        name: String,
        /// The arguments as JSON text, as the model wrote it. It may be invalid JSON.
        arguments: String,
    }
}
