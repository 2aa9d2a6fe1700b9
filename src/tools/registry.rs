//! All tools of this server, by the names in an agent's list of tools:
//!
//! - `get_weather`: a tool of the configuration, or a [built-in](super::builtin) one.
//! - `sandbox`: a group of tools.
//! - `mcp:files`: all tools of an MCP server.
//! - `mcp:files/read_file`: one tool of an MCP server, by the name that the server gives it.
//! - `mcp:files/resources`, `mcp:files/prompts`: tools that list and read the server's resources or prompts. A tool of
//!   one of these names can only be had with all others of its server.

use std::{fmt, sync::Arc};

use indexmap::IndexMap;

use super::{Tool, Toolbox, builtin, mcp::McpServer, sandbox::Sandbox};
use crate::base::text::nearest;

const RESOURCES: &str = "resources";
const PROMPTS: &str = "prompts";

/// All tools of this server, by name.
#[derive(Clone)]
pub(crate) struct ToolRegistry {
    tools: IndexMap<String, Arc<dyn Tool>>,
    mcp: IndexMap<String, Arc<McpServer>>,
    /// With the name by which agents list its tools.
    sandbox: Option<(String, Arc<Sandbox>)>,
}

/// The error of a name that no tool, group or MCP server has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no {kind} `{name}`{}", similar.as_ref().map(|name| format!("; did you mean `{name}`?")).unwrap_or_default())]
pub(crate) struct UnknownTool {
    kind: &'static str,
    name: String,
    similar: Option<String>,
}

impl ToolRegistry {
    /// A registry with the built-in tools.
    pub(crate) fn new() -> Self {
        let tools = builtin::tools().into_iter().map(|tool| (tool.spec().name.clone(), tool));
        Self { tools: tools.collect(), mcp: IndexMap::new(), sandbox: None }
    }

    /// Adds a tool under its name. It replaces a tool of the same name.
    #[must_use]
    pub(crate) fn tool(mut self, tool: impl Tool) -> Self {
        self.tools.insert(tool.spec().name.clone(), Arc::new(tool));
        self
    }

    /// Sets the sandbox, whose tools agents list by the name of the group.
    #[must_use]
    pub(crate) fn sandbox_group(mut self, name: impl Into<String>, sandbox: Arc<Sandbox>) -> Self {
        self.sandbox = Some((name.into(), sandbox));
        self
    }

    /// Returns the sandbox whose tools agents can list.
    pub(crate) fn sandbox(&self) -> Option<&Arc<Sandbox>> {
        self.sandbox.as_ref().map(|(_, sandbox)| sandbox)
    }

    /// Adds an MCP server under its name.
    #[must_use]
    pub(crate) fn mcp(mut self, server: Arc<McpServer>) -> Self {
        self.mcp.insert(server.name().to_owned(), server);
        self
    }

    /// Returns the MCP servers.
    pub(crate) fn mcp_servers(&self) -> impl Iterator<Item = &Arc<McpServer>> {
        self.mcp.values()
    }

    /// Starts the MCP servers in the background. Needs a tokio runtime.
    pub(crate) fn start(&self) {
        self.mcp.values().for_each(|server| server.start());
    }

    /// Stops the MCP servers, and waits until their processes have ended.
    pub(crate) async fn stop(&self) {
        futures::future::join_all(self.mcp.values().map(|server| server.stop())).await;
    }

    /// Returns a toolbox with the tools that an agent lists.
    ///
    /// # Errors
    /// [`UnknownTool`], for the first unknown name.
    pub(crate) fn toolbox<S: AsRef<str>>(&self, names: &[S]) -> Result<Toolbox, UnknownTool> {
        let mut toolbox = Toolbox::new();
        for name in names.iter().map(AsRef::as_ref) {
            toolbox = if let Some(path) = name.strip_prefix("mcp:") {
                let (server, tool) = path.split_once('/').map_or((path, None), |(server, tool)| (server, Some(tool)));
                let server = self.mcp.get(server).ok_or_else(|| self.unknown("MCP server", name))?;
                match tool {
                    Some(RESOURCES) => toolbox.source(McpServer::resources(server)),
                    Some(PROMPTS) => toolbox.source(McpServer::prompts(server)),
                    Some(tool) => toolbox.source(McpServer::single_tool(server, tool)),
                    None => toolbox.source(server.clone()),
                }
            } else if let Some((_, sandbox)) = self.sandbox.as_ref().filter(|(group, _)| group == name) {
                sandbox.tools().into_iter().fold(toolbox, Toolbox::shared_tool)
            } else {
                toolbox.shared_tool(self.tools.get(name).ok_or_else(|| self.unknown("tool", name))?.clone())
            };
        }
        Ok(toolbox)
    }

    fn unknown(&self, kind: &'static str, name: &str) -> UnknownTool {
        let known = self.tools.keys().chain(self.sandbox.iter().map(|(group, _)| group)).cloned();
        let known: Vec<_> = known.chain(self.mcp.keys().map(|server| format!("mcp:{server}"))).collect();
        // A name that lacks only the prefix is the best match.
        let prefixed = known.iter().find(|known| known.strip_prefix("mcp:") == Some(name)).map(String::as_str);
        let similar = prefixed.or_else(|| nearest(name, &known.iter().map(String::as_str).collect::<Vec<_>>()));
        UnknownTool { kind, name: name.to_owned(), similar: similar.map(str::to_owned) }
    }
}

impl fmt::Debug for ToolRegistry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolRegistry")
            .field("tools", &self.tools.keys().collect::<Vec<_>>())
            .field("mcp", &self.mcp.keys().collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::mcp::McpServerOptions;

    #[test]
    fn tools_are_found_by_name_and_unknown_names_get_a_suggestion() {
        let server = McpServer::new("files", McpServerOptions::command(["nothing"])).unwrap();
        let registry = ToolRegistry::new().mcp(Arc::new(server));
        let names = registry.toolbox(&["current_time", "mcp:files", "mcp:files/read"]).unwrap().tools();
        assert_eq!(names.iter().map(|tool| tool.name()).collect::<Vec<_>>(), ["current_time"]);
        assert!(registry.toolbox::<&str>(&[]).unwrap().is_empty());
        let wrong = |name: &str| registry.toolbox(&[name]).unwrap_err().to_string();
        assert_eq!(wrong("current_tyme"), "there is no tool `current_tyme`; did you mean `current_time`?");
        assert_eq!(wrong("mcp:flies"), "there is no MCP server `mcp:flies`; did you mean `mcp:files`?");
        assert_eq!(wrong("files"), "there is no tool `files`; did you mean `mcp:files`?");
        assert_eq!(wrong("zzz"), "there is no tool `zzz`");
    }
}
