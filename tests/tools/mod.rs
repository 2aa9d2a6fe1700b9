//! The server's own tools: HTTP tools against a service that records requests, and MCP tools against a real server and
//! a fake one that misbehaves.

#![allow(clippy::unwrap_used, missing_docs, unreachable_pub)]

mod http;
mod mcp_apps;
mod mcp_everything;
mod mcp_misbehaving;
mod mcp_process;
mod mcp_sdk;
#[path = "../support/running.rs"]
mod running;
mod support;
