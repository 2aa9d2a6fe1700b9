//! AG-UI 1.1 as plain types: the input that a client sends, and the events that this server sends.
//!
//! These types are data, free of tokio, HTTP and agents. Field names in JSON are camelCase. An optional field without a
//! value is omitted, never written as `null`. Source of the rules: the AG-UI 1.1 schema and prose (`docs/spec` in
//! `ag-ui-protocol/ag-ui`).

pub(crate) mod approval;
pub mod capabilities;
pub(crate) mod content;
pub(crate) mod decode;
pub(crate) mod encode;
pub mod event;
pub(crate) mod file_activity;
mod ids;
pub(crate) mod input;
pub(crate) mod interrupt;
pub(crate) mod message;
mod messages;
mod metadata;
pub(crate) mod open_values;
pub(crate) mod own_names;
pub(crate) mod patch;
pub(crate) mod recording;
pub(crate) mod schema;
mod usage;
mod version;
mod wire_struct;

pub use capabilities::AgentCapabilities;
pub use content::{ContentPart, MediaPart, MessageContent, PartSource, TextPart};
pub use event::{Event, EventType};
pub use ids::{InterruptId, MessageId, RunId, SubagentRunId, ThreadId, ToolCallId};
pub(crate) use input::DEEP_THINKING;
pub use input::{Context, RunAgentInput, ToolDefinition};
pub use interrupt::{Interrupt, ResumeEntry, ResumeStatus};
pub use message::{
    ActivityMessage, AssistantMessage, DeveloperMessage, FunctionCall, Message, ReasoningMessage,
    Role, SystemMessage, ToolCall, ToolCallKind, ToolMessage, UserMessage,
};
pub use messages::Messages;
pub(crate) use messages::{MessageIndex, find_call};
pub use metadata::Metadata;
pub(crate) use patch::JsonPatch;
pub use patch::{PatchKind, PatchOperation};
pub use usage::TokenUsage;
pub(crate) use version::{PROTOCOL_VERSION, VersionSupport, classify_version};

use serde_json::Value;

/// An object that is open by key: activity content, a JSON Schema. A `null` under a key is data.
pub type JsonObject = serde_json::Map<String, Value>;

/// AG-UI forbids `null` as the whole value of an optional field, so `null` counts as absent.
pub(crate) fn is_absent(value: &Option<Value>) -> bool {
    matches!(value, None | Some(Value::Null))
}
