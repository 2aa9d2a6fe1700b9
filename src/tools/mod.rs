//! Tools that a model can call: the [`Tool`] trait, [`tool_fn`] for tools made of closures, and the server's own tools.
//!
//! Nothing here knows models: an agent offers tools to one, checks the arguments against the schema, and calls.
//! Dropping the future of a call stops it. A [`ToolRegistry`] knows all tools by name, a [`Toolbox`] holds those of one
//! agent.

pub mod approval;
pub mod builtin;
mod call_digest;
mod caller_headers;
mod context;
mod descriptors;
mod error;
mod function;
pub mod http;
#[cfg(feature = "mcp")]
pub mod mcp;
mod options;
mod question;
#[cfg(feature = "mcp")]
pub mod registry;
pub mod sandbox;
pub mod schema;
mod secrets;
mod session;
mod tool;
pub mod toolbox;

#[cfg(feature = "mcp")]
pub use self::registry::{ToolRegistry, UnknownTool};
pub use self::{
    approval::ApprovalRule,
    caller_headers::{CallerHeader, CallerValue},
    context::ToolContext,
    error::ToolError,
    function::{FnTool, IntoToolResult, tool_fn},
    options::{HeaderSource, HeaderVariable, InvalidOption},
    question::Question,
    schema::Validator,
    tool::{Approval, Tool, ToolSource, ToolSpec},
    toolbox::{OfferedTool, Toolbox},
};
pub(crate) use self::{
    call_digest::call_digest,
    descriptors::close_descriptors_on_exec,
    question::CallAnswers,
    session::{ToolEvents, ToolSession},
};
