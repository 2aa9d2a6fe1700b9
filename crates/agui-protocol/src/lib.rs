//! AG-UI 1.1 as plain types: the input that a client sends, and the events that this server sends.
//!
//! These types are data, free of tokio, HTTP and agents. Field names in JSON are camelCase. An optional field without a
//! value is omitted, never written as `null`. Source of the rules: the AG-UI 1.1 schema and prose (`docs/spec` in
//! `ag-ui-protocol/ag-ui`).

// `unwrap_used` is in the root's Cargo.toml. A panic would end a run or a request, so a comment at
// each panic says why input cannot reach it.
#![cfg_attr(not(test), warn(clippy::expect_used, clippy::panic, clippy::unreachable))]

#[doc(hidden)]
pub mod approval;
pub mod capabilities;
pub(crate) mod content;
#[doc(hidden)]
pub mod decode;
#[doc(hidden)]
pub mod encode;
pub mod event;
#[doc(hidden)]
pub mod file_activity;
mod ids;
pub(crate) mod input;
pub(crate) mod interrupt;
pub(crate) mod message;
mod messages;
mod metadata;
#[doc(hidden)]
pub mod open_values;
#[doc(hidden)]
pub mod own_names;
#[doc(hidden)]
pub mod patch;
mod usage;
mod version;
mod wire_struct;

pub use capabilities::AgentCapabilities;
pub use content::{ContentPart, MediaPart, MessageContent, PartSource, TextPart};
pub use event::{Event, EventType};
pub use ids::{InterruptId, MessageId, RunId, SubagentRunId, ThreadId, ToolCallId};
pub use input::{Context, RunAgentInput, ToolDefinition};
pub use interrupt::{Interrupt, ResumeEntry, ResumeStatus};
pub use message::{
    ActivityMessage, AssistantMessage, DeveloperMessage, FunctionCall, Message, ReasoningMessage,
    Role, SystemMessage, ToolCall, ToolCallKind, ToolMessage, UserMessage,
};
pub use messages::Messages;
pub use metadata::Metadata;
pub(crate) use patch::JsonPatch;
pub use patch::{PatchKind, PatchOperation};
pub use usage::TokenUsage;
pub(crate) use version::PROTOCOL_VERSION;

use serde_json::Value;

/// An object that is open by key: activity content, a JSON Schema. A `null` under a key is data.
pub type JsonObject = serde_json::Map<String, Value>;

/// AG-UI forbids `null` as the whole value of an optional field, so `null` counts as absent.
#[doc(hidden)]
pub fn is_absent(value: &Option<Value>) -> bool {
    matches!(value, None | Some(Value::Null))
}

#[doc(hidden)]
pub mod host;

/// The example of the README, compiled by `cargo test --doc`.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
