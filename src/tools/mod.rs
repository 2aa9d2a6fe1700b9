//! What a model can do: the [`Tool`] trait, and the server's own tools.
//!
//! A tool says what it is by its [`ToolSpec`], whether somebody has to agree to a call, and then does it. Dropping the
//! future of a call stops it. Nothing here knows of models: an agent offers tools to one, checks the
//! arguments it wrote against the schema, and calls.
//!
//! [`http`] tools ask a web service, [`mcp`] ones belong to MCP servers, those of the [`sandbox`] run commands apart from
//! everything, [`builtin`] ones need nobody. A
//! [`ToolRegistry`] knows all of them by name, a [`Toolbox`] holds those of one agent. [`approval`] says when a person
//! is asked, [`schema`] whether arguments fit.

pub mod approval;
pub mod builtin;
pub mod http;
pub mod mcp;
pub mod registry;
pub mod sandbox;
pub mod schema;
pub mod toolbox;

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;

pub use self::{
    approval::ApprovalRule,
    registry::{ToolRegistry, UnknownTool},
    schema::Validator,
    toolbox::{OfferedTool, Toolbox},
};
use crate::protocol::{JsonObject, MessageContent, RunId, ThreadId, ToolCallId};

/// What a model is told about a tool.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolSpec {
    /// The name the model calls it by.
    pub name: String,
    /// What it does, for the model to decide when to use it.
    pub description: String,
    /// A JSON Schema of its arguments, which are an object.
    pub parameters: Value,
}

/// A call whose arguments fit the tool's schema.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolCall {
    /// Identifies the call within the conversation.
    pub id: ToolCallId,
    /// The tool's name.
    pub name: String,
    /// The arguments.
    pub arguments: JsonObject,
}

/// Whether a person has to agree to a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Approval {
    /// It is done without asking.
    NotNeeded,
    /// Somebody is asked first.
    Needed,
}

/// For whom a call is made.
#[derive(Debug, Clone)]
pub struct ToolContext {
    /// The conversation.
    pub thread_id: ThreadId,
    /// The run.
    pub run_id: RunId,
    /// Who asked for the run; `None` when the server authenticates nobody.
    pub principal: Option<Arc<str>>,
}

/// Why a call failed. The message goes to the model, which may do better next time; the cause to the log alone.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct ToolError {
    message: String,
    #[source]
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl ToolError {
    /// A failure that the model is told about.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), source: None }
    }

    /// Adds a cause, for the log alone.
    pub fn caused_by(mut self, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// What the model is told.
    pub fn message(&self) -> &str {
        &self.message
    }
}

/// Something that a model can do.
#[async_trait]
pub trait Tool: Send + Sync + 'static {
    /// What a model is told about it.
    fn spec(&self) -> &ToolSpec;

    /// Whether somebody has to agree to this call first.
    fn approval(&self, _call: &ToolCall) -> Approval {
        Approval::NotNeeded
    }

    /// Does it. Dropping the future stops the work.
    ///
    /// # Errors
    /// A [`ToolError`], which the model is told about.
    async fn call(&self, call: ToolCall, cx: &ToolContext) -> Result<MessageContent, ToolError>;
}

/// Tools that may change while the server runs, such as those of an MCP server.
#[async_trait]
pub trait ToolSource: Send + Sync + 'static {
    /// The tools that there are now. A tool stays the same `Arc` for as long as it is the same tool.
    fn tools(&self) -> Vec<Arc<dyn Tool>>;

    /// Completes when the source knows its tools, or knows that it cannot have them now. It may take its time: whoever
    /// waits sets the limit.
    async fn ready(&self) {}
}
