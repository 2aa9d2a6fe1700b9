//! The request: everything an agent is told about a conversation.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{JsonObject, Message, Messages, Metadata, ResumeEntry, RunId, ThreadId, is_absent};

/// A request to run an agent. Read it from untrusted bytes with [`decode`](super::decode::decode).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunAgentInput {
    /// The conversation this run belongs to.
    pub thread_id: ThreadId,
    /// Identifies the run.
    pub run_id: RunId,
    /// The protocol version the client speaks; absent from clients older than the field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol_version: Option<String>,
    /// The run that spawned this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_run_id: Option<RunId>,
    /// The state the run starts from, any JSON; absent means that nothing has been agreed yet.
    #[serde(default, skip_serializing_if = "is_absent")]
    pub state: Option<Value>,
    /// The conversation so far, in order.
    pub messages: Messages,
    /// The application's own tools: an agent calls them and leaves the answer to the application.
    #[serde(default)]
    pub tools: Vec<Tool>,
    /// What the application wants the model to know besides the conversation.
    #[serde(default)]
    pub context: Vec<Context>,
    /// What the application passes through to the agent, any JSON.
    #[serde(default, skip_serializing_if = "is_absent")]
    pub forwarded_props: Option<Value>,
    /// Answers to the interrupts that ended the previous run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resume: Vec<ResumeEntry>,
}

impl RunAgentInput {
    /// An input with nothing but identifiers and messages.
    pub fn new(thread_id: impl Into<ThreadId>, run_id: impl Into<RunId>, messages: impl Into<Messages>) -> Self {
        Self {
            thread_id: thread_id.into(),
            run_id: run_id.into(),
            protocol_version: None,
            parent_run_id: None,
            state: None,
            messages: messages.into(),
            tools: Vec::new(),
            context: Vec::new(),
            forwarded_props: None,
            resume: Vec::new(),
        }
    }

    /// The state the run starts from: the input's own, or the empty object.
    pub fn state_or_empty(&self) -> Value {
        self.state.clone().unwrap_or_else(|| Value::Object(JsonObject::new()))
    }

    /// The text of the newest user message, if there is one.
    pub fn last_user_text(&self) -> Option<std::borrow::Cow<'_, str>> {
        self.messages.iter().rev().find_map(|message| match message {
            Message::User(user) => Some(user.content.text()),
            _ => None,
        })
    }

    /// One of the application's tools, by name.
    pub fn tool(&self, name: &str) -> Option<&Tool> {
        self.tools.iter().find(|tool| tool.name == name)
    }

    /// A member of `forwardedProps`, when that is an object and has it.
    pub fn forwarded_prop(&self, name: &str) -> Option<&Value> {
        self.forwarded_props.as_ref()?.get(name)
    }
}

/// A tool that an agent may call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Tool {
    /// The name the agent calls it by.
    pub name: String,
    /// What it does, for the agent to decide when to use it.
    pub description: String,
    /// A JSON Schema of its arguments; absent for a tool that takes none.
    #[serde(default, skip_serializing_if = "is_absent")]
    pub parameters: Option<Value>,
    /// Anything more about the tool, open by key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Metadata>,
}

/// Something the application wants the model to know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Context {
    /// What it is.
    pub description: String,
    /// The thing itself.
    pub value: String,
}
