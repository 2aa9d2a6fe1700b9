//! The server's own tools, against services and MCP servers that mean no good, and against a real one.

#![allow(clippy::unwrap_used, missing_docs, unreachable_pub)]

mod everything;
mod http;
mod misbehaving;
mod process;
mod support;
