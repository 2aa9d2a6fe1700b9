//! The report of `agui-server check --online` on an MCP server.

use super::{server::McpServer, tool::McpTool, tool_ui::ToolUi};

impl McpServer {
    /// Connects once, and returns the revision and the tools, each with its page.
    ///
    /// # Errors
    /// The reason why the server is not connected.
    #[doc(hidden)]
    pub async fn probe(&self) -> Result<String, String> {
        self.settled().await;
        if self.supervisor.caller.wants_login() {
            return Ok("its tools are known once a person has logged in".to_owned());
        }
        let client = self.supervisor.caller.session.client()?;
        let tools: Vec<_> =
            self.supervisor.tools.borrow().tools.iter().map(|tool| summary(tool)).collect();
        let tools = if tools.is_empty() { "no tools".to_owned() } else { tools.join(", ") };
        Ok(format!("revision {}: {tools}", client.revision()))
    }
}

/// Returns the tool's name, its page, and a note if only pages may call it.
fn summary(McpTool { spec, ui, caller, .. }: &McpTool) -> String {
    let ToolUi { resource_uri, is_for_model, .. } = ui;
    let page = resource_uri.as_ref().map(|uri| {
        if caller.options.apps {
            format!("page {uri}")
        } else {
            format!("page {uri}, not shown without `apps = true`")
        }
    });
    let notes = page.into_iter().chain((!is_for_model).then(|| "only for pages".to_owned()));
    let notes = notes.collect::<Vec<_>>().join(", ");
    if notes.is_empty() { spec.name.clone() } else { format!("{} ({notes})", spec.name) }
}
