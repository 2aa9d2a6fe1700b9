//! AG-UI 1.0 as plain types: what a front end sends, and what this server answers.
//!
//! Pure data: nothing here knows of tokio, HTTP or agents. Field names on the wire are camelCase;
//! an optional field that has no value is left out, never written as `null`. The rules behind the
//! shapes are the AG-UI 1.0 schema and prose (`docs/spec` in `ag-ui-protocol/ag-ui`).
//!
//! - [`event`]: the 31 events of a run.
//! - [`input`]: [`RunAgentInput`], the one message that travels the other way, and
//!   [`decode`], which reads it from untrusted bytes.
//! - [`message`] and [`content`]: the seven message roles and what they carry; [`Messages`], the list of them.
//! - [`approval`]: a person's yes or no to what an agent wants to do.
//! - [`interrupt`], [`patch`], [`usage`], [`capabilities`]: what events and inputs refer to.

pub mod approval;
pub mod capabilities;
pub mod content;
pub mod decode;
pub mod event;
mod ids;
pub mod input;
pub mod interrupt;
pub mod message;
mod messages;
mod metadata;
pub mod patch;
pub mod usage;
mod version;

pub use capabilities::AgentCapabilities;
pub use content::{ContentPart, MediaPart, MessageContent, PartSource, TextPart};
pub use event::{Event, EventType};
pub use ids::{InterruptId, MessageId, RunId, SubagentRunId, ThreadId, ToolCallId};
pub use input::{Context, RunAgentInput, Tool};
pub use interrupt::{Interrupt, ResumeEntry, ResumeStatus};
pub use message::{
    ActivityMessage, AssistantMessage, DeveloperMessage, FunctionCall, Message, ReasoningMessage, Role, SystemMessage,
    ToolCall, ToolCallKind, ToolMessage, UserMessage,
};
pub use messages::Messages;
pub use metadata::Metadata;
pub use patch::{JsonPatch, PatchOperation};
pub use usage::TokenUsage;
pub use version::{PROTOCOL_VERSION, VersionSupport, judge_version};

use serde_json::Value;

/// An object that is open by key: activity content, a JSON Schema. A `null` under a key is data.
pub type JsonObject = serde_json::Map<String, Value>;

/// Whether an optional JSON payload has to be left out: AG-UI forbids a whole optional field to be
/// `null`, so a `null` somebody put there means the same as nothing.
pub(crate) fn is_absent(value: &Option<Value>) -> bool {
    matches!(value, None | Some(Value::Null))
}
