//! Tools that a model can call: the [`Tool`] trait, [`tool_fn`] for tools made of closures, and the server's own tools.
//!
//! No item here depends on a model: an agent offers tools to its model, checks the arguments
//! against the schema, and calls. Dropping the future of a call stops it. A [`Toolbox`] holds the
//! tools of one agent.

// `unwrap_used` is in the root's Cargo.toml. A panic would end a run or a request, so each
// remaining one has a reason why input cannot reach it.
#![cfg_attr(not(test), warn(clippy::expect_used, clippy::panic, clippy::unreachable))]

mod approval;
mod arguments;
pub mod builtin;
mod call_digest;
mod caller_headers;
mod context;
mod error;
mod function;
#[doc(hidden)]
pub mod http;
#[doc(hidden)]
pub mod login;
#[doc(hidden)]
pub mod options;
mod question;
mod schema;
mod secrets;
mod session;
mod tool;
mod toolbox;

pub(crate) use self::caller_headers::CallerHeader;
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

#[doc(hidden)]
pub mod host;
