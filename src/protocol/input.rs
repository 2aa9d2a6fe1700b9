//! The request to run an agent, with the tools and the context that the application provides.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::{JsonObject, Message, Messages, Metadata, ResumeEntry, RunId, ThreadId, is_absent};

/// The member of `forwardedProps` that turns thinking on or off for one run.
pub(crate) const DEEP_THINKING: &str = "enableDeepThinking";

/// A request to run an agent. Read it from untrusted bytes with [`decode`](super::decode::decode).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(description = "A request to run an agent.")]
pub struct RunAgentInput {
    /// The conversation that the run belongs to.
    pub thread_id: ThreadId,
    /// Identifies the run.
    pub run_id: RunId,
    /// The protocol version of the client; absent from clients older than the field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol_version: Option<String>,
    /// The run that this one continues or was spawned by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_run_id: Option<RunId>,
    /// The state that the run starts from, any JSON.
    #[serde(default, skip_serializing_if = "is_absent")]
    pub state: Option<Value>,
    /// The conversation so far, in order.
    #[schema(value_type = Vec<Message>)]
    pub messages: Messages,
    /// Tools that the application itself executes when an agent calls them.
    #[serde(default)]
    pub tools: Vec<ToolDefinition>,
    /// Information for the model beside the conversation.
    #[serde(default)]
    pub context: Vec<Context>,
    /// Data that the application passes to the agent, any JSON.
    #[serde(default, skip_serializing_if = "is_absent")]
    pub forwarded_props: Option<Value>,
    /// Replies to the interrupts that ended the previous run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resume: Vec<ResumeEntry>,
}

impl RunAgentInput {
    /// Creates an input with identifiers and messages alone.
    pub fn new(thread_id: impl Into<ThreadId>, run_id: impl Into<RunId>, messages: impl Into<Messages>) -> Self {
        Self { thread_id: thread_id.into(), run_id: run_id.into(), messages: messages.into(), ..Self::default() }
    }

    /// Returns the state that the run starts from, by default the empty object.
    pub fn state_or_empty(&self) -> Value {
        self.state.clone().unwrap_or_else(|| Value::Object(JsonObject::new()))
    }

    /// Returns the text of the last user message.
    pub fn last_user_text(&self) -> Option<std::borrow::Cow<'_, str>> {
        self.messages.iter().rev().find_map(|message| match message {
            Message::User(user) => Some(user.content.text()),
            _ => None,
        })
    }

    /// Returns the application's tool of this name.
    pub fn tool(&self, name: &str) -> Option<&ToolDefinition> {
        self.tools.iter().find(|tool| tool.name == name)
    }

    /// Returns `enableDeepThinking` of `forwardedProps`, if it is a boolean.
    pub fn deep_thinking(&self) -> Option<bool> {
        self.forwarded_prop(DEEP_THINKING)?.as_bool()
    }

    /// Returns a member of `forwardedProps`, if that is an object.
    pub fn forwarded_prop(&self, name: &str) -> Option<&Value> {
        self.forwarded_props.as_ref()?.get(name)
    }
}

/// A tool that an agent may call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = Tool)]
pub struct ToolDefinition {
    /// The name in calls.
    pub name: String,
    /// Tells the model when to use the tool.
    pub description: String,
    /// JSON Schema of the arguments; absent for a tool without arguments.
    #[serde(default, skip_serializing_if = "is_absent")]
    pub parameters: Option<Value>,
    /// Further data, open by key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Metadata>,
}

/// One piece of information for the model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Context {
    /// Describes the value.
    pub description: String,
    /// The information itself.
    pub value: String,
}
