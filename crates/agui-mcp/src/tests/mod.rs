//! MCP servers that fail, or are away, while other calls go on.

mod away;
mod busy;
mod failures;
mod fake_server;
mod openings;

use std::sync::Arc;

use crate::{McpServer, McpServerOptions};
use agui_tools::{ToolContext, ToolSource as _};

/// Connects to a server named `test`.
async fn connect(options: McpServerOptions) -> Arc<McpServer> {
    let server = Arc::new(McpServer::new("test", options).unwrap());
    server.ready().await;
    server
}

/// Calls a tool without arguments. Returns the text, or the error's message.
async fn call_in(server: &McpServer, tool: &str, cx: &ToolContext) -> Result<String, String> {
    let found = server.tools().into_iter().find(|found| found.spec().name == tool);
    let called = found.expect("the tool is listed").call(Default::default(), cx).await;
    called.map(|content| content.text().into_owned()).map_err(|error| error.message().to_owned())
}

async fn call(server: &McpServer, tool: &str) -> Result<String, String> {
    call_in(server, tool, &ToolContext::for_test("tool")).await
}

/// Begins a call.
fn begin(
    server: &Arc<McpServer>,
    tool: &'static str,
) -> tokio::task::JoinHandle<Result<String, String>> {
    let server = server.clone();
    tokio::spawn(async move { call(&server, tool).await })
}
