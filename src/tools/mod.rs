//! Tools that a model can call: the [`Tool`] trait, [`tool_fn`] for tools made of closures, and the server's own tools.
//!
//! Nothing here knows models: an agent offers tools to one, checks the arguments against the schema, and calls.
//! Dropping the future of a call stops it. A [`Toolbox`] holds the tools of one agent.

mod approval;
mod arguments;
pub mod builtin;
mod call_digest;
mod caller_headers;
mod context;
#[cfg(feature = "sandbox")]
mod descriptors;
mod error;
mod function;
pub(crate) mod http;
pub(crate) mod login;
#[cfg(feature = "mcp")]
pub mod mcp;
pub(crate) mod options;
mod question;
#[cfg(feature = "sandbox")]
pub mod sandbox;
mod schema;
mod secrets;
mod session;
mod tool;
mod toolbox;

#[cfg(feature = "sandbox")]
pub(crate) use self::descriptors::close_descriptors_on_exec;
pub use self::{
    approval::ApprovalRule,
    context::ToolContext,
    error::ToolError,
    function::{FnTool, IntoToolResult, tool_fn},
    question::Question,
    schema::Validator,
    tool::{Approval, Repeat, Tool, ToolSource, ToolSpec},
    toolbox::{OfferedTool, Toolbox},
};
pub(crate) use self::{
    arguments::CallArguments,
    call_digest::{bound_call, is_bound_to},
    caller_headers::{CallerHeader, CallerValue},
    question::{CallReplies, KeptValue, PersonsReply},
    session::{ToolEvents, ToolSession},
};
