//! What `agui-server check --online` says of an MCP server.

use super::{server::McpServer, tool::McpTool, tool_ui::ToolUi};
use crate::tools::ToolSource as _;

impl McpServer {
    /// Connects once. Returns the tools, each with its page; or why the server is not connected.
    pub(crate) async fn probe(&self) -> Result<Vec<String>, String> {
        self.ready().await;
        let connected = self.supervisor.caller.client.lock().as_ref().map(drop).map_err(Clone::clone);
        let tools = self.supervisor.tools.borrow().tools.iter().map(|tool| summary(tool)).collect();
        connected.map(|()| tools)
    }
}

/// Returns the name, with what the tool shows and whom it is for.
fn summary(McpTool { spec, ui, caller, .. }: &McpTool) -> String {
    let ToolUi { resource_uri, is_for_model, .. } = ui;
    let page = resource_uri.as_ref().map(|uri| {
        if caller.options.apps { format!("page {uri}") } else { format!("page {uri}, not shown without `apps = true`") }
    });
    let notes = page.into_iter().chain((!is_for_model).then(|| "only for pages".to_owned()));
    let notes = notes.collect::<Vec<_>>().join(", ");
    if notes.is_empty() { spec.name.clone() } else { format!("{} ({notes})", spec.name) }
}
