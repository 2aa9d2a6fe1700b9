//! The messages of a conversation, by role.

use serde::{Deserialize, Serialize};

use super::{JsonObject, MessageContent, MessageId, Metadata, SubagentRunId, ToolCallId};

/// Who a message is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The application's developer.
    Developer,
    /// The system.
    System,
    /// The agent.
    Assistant,
    /// The person using the application.
    User,
    /// A tool, answering a call.
    Tool,
    /// Structured progress, for the user interface alone.
    Activity,
    /// What the model thought.
    Reasoning,
}

impl Role {
    /// The role as it is written on the wire.
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

    /// The role a text on the wire names, if it is one of this version of the protocol.
    pub fn from_wire(text: &str) -> Option<Self> {
        Some(match text {
            "developer" => Self::Developer,
            "system" => Self::System,
            "assistant" => Self::Assistant,
            "user" => Self::User,
            "tool" => Self::Tool,
            "activity" => Self::Activity,
            "reasoning" => Self::Reasoning,
            _ => return None,
        })
    }
}

/// Any message of a conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "lowercase")]
pub enum Message {
    /// Instructions from the application's developer.
    Developer(DeveloperMessage),
    /// Instructions from the system.
    System(SystemMessage),
    /// What the agent said and which tools it called.
    Assistant(AssistantMessage),
    /// What the person said.
    User(UserMessage),
    /// What a tool returned.
    Tool(ToolMessage),
    /// Structured progress.
    Activity(ActivityMessage),
    /// What the model thought.
    Reasoning(ReasoningMessage),
}

impl Message {
    /// A user message of plain text.
    pub fn user(id: impl Into<MessageId>, content: impl Into<MessageContent>) -> Self {
        Self::User(UserMessage {
            id: id.into(),
            content: content.into(),
            name: None,
            encrypted_value: None,
            metadata: None,
            subagent_run_id: None,
        })
    }

    /// An assistant message of plain text.
    pub fn assistant(id: impl Into<MessageId>, content: impl Into<String>) -> Self {
        Self::Assistant(AssistantMessage { content: Some(content.into()), ..AssistantMessage::new(id.into()) })
    }

    /// The message's identifier.
    pub fn id(&self) -> &MessageId {
        match self {
            Self::Developer(m) => &m.id,
            Self::System(m) => &m.id,
            Self::Assistant(m) => &m.id,
            Self::User(m) => &m.id,
            Self::Tool(m) => &m.id,
            Self::Activity(m) => &m.id,
            Self::Reasoning(m) => &m.id,
        }
    }

    /// Who the message is from.
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

    /// The tool calls that the message made; none on other roles than the assistant's.
    pub fn tool_calls(&self) -> &[ToolCall] {
        match self {
            Self::Assistant(m) => m.tool_calls(),
            _ => &[],
        }
    }

    /// Gives the message another identifier.
    pub fn set_id(&mut self, id: MessageId) {
        match self {
            Self::Developer(m) => m.id = id,
            Self::System(m) => m.id = id,
            Self::Assistant(m) => m.id = id,
            Self::User(m) => m.id = id,
            Self::Tool(m) => m.id = id,
            Self::Activity(m) => m.id = id,
            Self::Reasoning(m) => m.id = id,
        }
    }

    /// The display name of the author, on the roles that have one.
    pub fn name(&self) -> Option<&str> {
        match self {
            Self::Developer(m) => m.name.as_deref(),
            Self::System(m) => m.name.as_deref(),
            Self::Assistant(m) => m.name.as_deref(),
            Self::User(m) => m.name.as_deref(),
            Self::Tool(_) | Self::Activity(_) | Self::Reasoning(_) => None,
        }
    }

    /// The subagent invocation the message belongs to; `None` is the parent agent.
    pub fn subagent_run_id(&self) -> Option<&SubagentRunId> {
        match self {
            Self::Developer(m) => m.subagent_run_id.as_ref(),
            Self::System(m) => m.subagent_run_id.as_ref(),
            Self::Assistant(m) => m.subagent_run_id.as_ref(),
            Self::User(m) => m.subagent_run_id.as_ref(),
            Self::Tool(m) => m.subagent_run_id.as_ref(),
            Self::Activity(m) => m.subagent_run_id.as_ref(),
            Self::Reasoning(m) => m.subagent_run_id.as_ref(),
        }
    }

    /// The message's metadata, to be read or merged into.
    pub fn metadata_mut(&mut self) -> &mut Option<Metadata> {
        match self {
            Self::Developer(m) => &mut m.metadata,
            Self::System(m) => &mut m.metadata,
            Self::Assistant(m) => &mut m.metadata,
            Self::User(m) => &mut m.metadata,
            Self::Tool(m) => &mut m.metadata,
            Self::Activity(m) => &mut m.metadata,
            Self::Reasoning(m) => &mut m.metadata,
        }
    }

    /// Where a provider's opaque artefact is kept; activity messages have no such place.
    pub fn encrypted_value_mut(&mut self) -> Option<&mut Option<String>> {
        match self {
            Self::Developer(m) => Some(&mut m.encrypted_value),
            Self::System(m) => Some(&mut m.encrypted_value),
            Self::Assistant(m) => Some(&mut m.encrypted_value),
            Self::User(m) => Some(&mut m.encrypted_value),
            Self::Tool(m) => Some(&mut m.encrypted_value),
            Self::Reasoning(m) => Some(&mut m.encrypted_value),
            Self::Activity(_) => None,
        }
    }
}

/// One message struct a role. What all of them have (the id, where it belongs, metadata) is written once here.
macro_rules! message {
    ($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident: $type:ty,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        #[serde(rename_all = "camelCase")]
        pub struct $name {
            /// Identifies the message within the conversation.
            pub id: MessageId,
            $($(#[$field_doc])* pub $field: $type,)*
            /// Anything more about the message, open by key.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub metadata: Option<Metadata>,
            /// The subagent invocation the message belongs to; `None` is the parent agent.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub subagent_run_id: Option<SubagentRunId>,
        }
    };
}

message! {
    /// Instructions from the application's developer.
    DeveloperMessage {
        /// The instructions.
        content: String,
        /// A display name for the author.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        /// A provider's opaque artefact, to be returned to it unchanged.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        encrypted_value: Option<String>,
    }
}

message! {
    /// Instructions from the system.
    SystemMessage {
        /// The instructions.
        content: String,
        /// A display name for the author.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        /// A provider's opaque artefact, to be returned to it unchanged.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        encrypted_value: Option<String>,
    }
}

message! {
    /// What the agent said and which tools it called.
    AssistantMessage {
        /// What it said; absent when the turn consists of tool calls alone.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        content: Option<String>,
        /// A display name for the author.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        /// The tool calls of the turn; absent and empty are kept apart, as clients keep them apart.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tool_calls: Option<Vec<ToolCall>>,
        /// A provider's opaque artefact, to be returned to it unchanged.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        encrypted_value: Option<String>,
    }
}

impl AssistantMessage {
    /// A message that says nothing yet.
    pub fn new(id: MessageId) -> Self {
        Self {
            id,
            content: None,
            name: None,
            tool_calls: None,
            encrypted_value: None,
            metadata: None,
            subagent_run_id: None,
        }
    }

    /// The tool calls of the turn, none when the list is absent.
    pub fn tool_calls(&self) -> &[ToolCall] {
        self.tool_calls.as_deref().unwrap_or_default()
    }
}

message! {
    /// What the person said.
    UserMessage {
        /// Text, or an ordered list of parts.
        content: MessageContent,
        /// A display name for the author.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        /// A provider's opaque artefact, to be returned to it unchanged.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        encrypted_value: Option<String>,
    }
}

message! {
    /// What a tool returned.
    ToolMessage {
        /// Text, or an ordered list of parts.
        content: MessageContent,
        /// The call this answers.
        tool_call_id: ToolCallId,
        /// Why the tool failed, if it did; beside the content, not instead of it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<String>,
        /// A provider's opaque artefact, to be returned to it unchanged.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        encrypted_value: Option<String>,
    }
}

message! {
    /// Structured progress that keeps its place in the conversation. It is for the user interface: no model sees it.
    ActivityMessage {
        /// What kind of activity this is; the set is the producer's own.
        activity_type: String,
        /// The activity itself, open by key.
        content: JsonObject,
    }
}

message! {
    /// What the model thought.
    ReasoningMessage {
        /// The reasoning text.
        content: String,
        /// A provider's opaque reasoning artefact, to be returned to it unchanged.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        encrypted_value: Option<String>,
    }
}

/// A call that an assistant message made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolCall {
    /// Identifies the call; the tool message that answers it names it.
    pub id: ToolCallId,
    /// The kind of call.
    #[serde(rename = "type")]
    pub kind: ToolCallKind,
    /// What is called, and with what.
    pub function: FunctionCall,
    /// A provider's opaque artefact, to be returned to it unchanged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encrypted_value: Option<String>,
    /// Anything more about the call, open by key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Metadata>,
}

impl ToolCall {
    /// A function call. `arguments` is JSON as text, as the model wrote it.
    pub fn new(id: impl Into<ToolCallId>, name: impl Into<String>, arguments: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            kind: ToolCallKind::Function,
            function: FunctionCall { name: name.into(), arguments: arguments.into() },
            encrypted_value: None,
            metadata: None,
        }
    }
}

/// The one kind of tool call the protocol has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ToolCallKind {
    /// A function.
    #[default]
    Function,
}

/// The name and the arguments of a tool call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FunctionCall {
    /// Which tool is called.
    pub name: String,
    /// The arguments as JSON text. Kept as written: a model can write JSON that does not parse.
    pub arguments: String,
}
