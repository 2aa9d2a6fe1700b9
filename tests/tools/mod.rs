//! The server's own tools: HTTP tools against a service that records requests, MCP tools against a real server and a fake
//! one that misbehaves, and the sandbox of commands.

mod http;
mod logins;
mod mcp_apps;
mod mcp_everything;
mod mcp_http_misbehaving;
mod mcp_misbehaving;
mod mcp_modern;
mod mcp_process;
mod mcp_python;
mod mcp_sdk;
mod sandbox;
mod support;
