//! The traits that tools and sources of tools implement.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Value, json};

use super::{context::ToolContext, error::ToolError};
use agui_agent::{AppRequest, RunContext};
use agui_protocol::{JsonObject, MessageContent};

/// The description of a tool that a model gets.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolSpec {
    /// The name that the model calls the tool by.
    pub name: String,
    /// The tool's purpose and effects, by which the model decides when to call it.
    pub description: String,
    /// A JSON Schema of the arguments, which are an object.
    pub parameters: Value,
}

impl ToolSpec {
    /// The description of a tool with the schema of its arguments.
    pub fn new(name: impl Into<String>, description: impl Into<String>, parameters: Value) -> Self {
        Self { name: name.into(), description: description.into(), parameters }
    }
}

/// Returns the schema of arguments with these properties and no others.
pub fn object_schema(properties: Value, required: &[&str]) -> Value {
    json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
}

/// The approval by a person that a call needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Approval {
    /// The call is carried out without asking.
    NotNeeded,
    /// A person is asked before the call.
    Needed,
}

/// Whether a call may run again if its server crashed before the result was stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Repeat {
    /// The call runs again: it changes nothing.
    Safe,
    /// The call runs again with the same idempotency key, by which its effect happens once.
    Keyed,
    /// The call does not run again. The model is told that its outcome is unknown.
    Never,
}

/// A tool that a model can call.
///
/// [`tool_fn`](super::tool_fn) makes one of a closure. A type that implements the trait can keep what its calls need,
/// and can require approval by its arguments:
///
/// ```
/// use agui_protocol::{JsonObject, MessageContent};
/// use agui_tools::{Approval, Tool, ToolContext, ToolError, ToolSpec};
/// use serde_json::json;
///
/// struct Refund { spec: ToolSpec }
///
/// impl Refund {
///     fn new() -> Self {
///         let parameters = json!({
///             "type": "object", "properties": { "cents": { "type": "integer" } }, "required": ["cents"]
///         });
///         Self { spec: ToolSpec::new("refund", "Pays an amount in cents back.", parameters) }
///     }
/// }
///
/// #[async_trait::async_trait]
/// impl Tool for Refund {
///     fn spec(&self) -> &ToolSpec {
///         &self.spec
///     }
///
///     fn approval(&self, arguments: &JsonObject) -> Approval {
///         match arguments["cents"].as_u64() {
///             Some(cents) if cents < 1_000 => Approval::NotNeeded,
///             _ => Approval::Needed,
///         }
///     }
///
///     async fn call(&self, arguments: JsonObject, cx: &ToolContext) -> Result<MessageContent, ToolError> {
///         cx.report_progress("Asking the bank", None).await?;
///         Ok(format!("{} cents were paid back.", arguments["cents"]).into())
///     }
/// }
/// ```
#[async_trait]
pub trait Tool: Send + Sync + 'static {
    /// Returns the description for the model.
    fn spec(&self) -> &ToolSpec;

    /// Returns the name under which calls are counted in the metrics. It must not depend on clients or models.
    fn metric_name(&self) -> &str {
        &self.spec().name
    }

    /// Returns the name of the MCP server that carries calls out. A call that waited for a person,
    /// or is continued after this server was lost, runs only if the same server still has the tool.
    fn server(&self) -> Option<&str> {
        None
    }

    /// Returns whether a person has to agree to a call with these arguments first.
    fn approval(&self, _arguments: &JsonObject) -> Approval {
        Approval::NotNeeded
    }

    /// Returns whether a call with these arguments may run again after its server was lost; never by default.
    fn repeat(&self, _arguments: &JsonObject) -> Repeat {
        Repeat::Never
    }

    /// Carries out a call. The arguments fit the schema. The future is dropped when the run ends or the call takes too
    /// long; a tool that starts other work has to stop that work then.
    ///
    /// # Errors
    /// A [`ToolError`], which the model is told about.
    async fn call(
        &self,
        arguments: JsonObject,
        cx: &ToolContext,
    ) -> Result<MessageContent, ToolError>;
}

/// Tools that can change while the server runs, such as those of an MCP server.
#[async_trait]
pub trait ToolSource: Send + Sync + 'static {
    /// Returns the current tools. An unchanged tool is the same `Arc` each time.
    fn tools(&self) -> Vec<Arc<dyn Tool>>;

    /// Returns the source that replaces this one for a run, such as the principal's own; `None` to
    /// keep this one.
    async fn for_run(&self, _cx: &RunContext) -> Option<Arc<dyn ToolSource>> {
        None
    }

    /// Responds to a request of a page that belongs to this source; `None` if the page does not.
    async fn respond_to_app(
        &self,
        _request: &AppRequest,
        _cx: &ToolContext,
    ) -> Option<Result<Value, ToolError>> {
        None
    }

    /// Completes when the source knows its tools, or knows that it cannot have them now. The caller sets a time limit.
    async fn ready(&self) {}
}
