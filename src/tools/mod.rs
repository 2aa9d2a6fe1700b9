//! Tools that a model can call: the [`Tool`] trait, [`tool_fn`] for tools made of closures, and the server's own tools.
//!
//! A tool describes itself to the model by its [`ToolSpec`], says whether a person has to approve a call, and carries
//! the call out. A [`ToolContext`] tells a call about its run, and lets it report progress, emit events and ask a
//! person. Dropping the future of a call stops it. Nothing here knows models: an agent offers tools to one, checks
//! the arguments against the schema, and calls.
//!
//! [`http`] tools call web services, [`mcp`] tools belong to MCP servers, those of the [`sandbox`] run commands in
//! isolation, [`builtin`] ones need no other system. A [`ToolRegistry`] knows all tools by name, a [`Toolbox`] holds
//! those of one agent. [`approval`] decides when a person is asked, [`schema`] checks arguments.

pub mod approval;
pub mod builtin;
mod context;
mod error;
mod function;
pub mod http;
pub mod mcp;
mod options;
mod question;
pub mod registry;
pub mod sandbox;
pub mod schema;
mod session;
mod tool;
pub mod toolbox;

pub use self::{
    approval::ApprovalRule,
    context::ToolContext,
    error::ToolError,
    function::{FnTool, IntoToolResult, tool_fn},
    options::{HeaderSource, HeaderVariable, InvalidOption},
    question::Question,
    registry::{ToolRegistry, UnknownTool},
    schema::Validator,
    tool::{Approval, Tool, ToolSource, ToolSpec},
    toolbox::{OfferedTool, Toolbox},
};
pub(crate) use self::{
    question::CallAnswers,
    session::{ToolEvents, ToolSession},
};
