//! Every tool of this server by the name that an agent lists it under.
//!
//! - `get_weather`: a tool, one of the configuration's or a [built-in](super::builtin) one.
//! - `sandbox`: a group of tools that belong together.
//! - `mcp:files`: all tools of an MCP server.
//! - `mcp:files/read_file`: one of them, by the name the server gives it.

use std::{fmt, sync::Arc};

use indexmap::IndexMap;

use super::{
    Tool, Toolbox,
    builtin::{self, BUILT_IN},
    mcp::McpServer,
};

/// Every tool of this server.
#[derive(Clone)]
pub struct ToolRegistry {
    tools: IndexMap<String, Arc<dyn Tool>>,
    groups: IndexMap<String, Vec<Arc<dyn Tool>>>,
    mcp: IndexMap<String, Arc<McpServer>>,
}

/// A name that stands for no tool.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no {what} `{name}`{}", near.as_ref().map(|near| format!("; did you mean `{near}`?")).unwrap_or_default())]
pub struct UnknownTool {
    what: &'static str,
    name: String,
    near: Option<String>,
}

impl Default for ToolRegistry {
    fn default() -> Self {
        Self::new()
    }
}

impl ToolRegistry {
    /// One that knows the built-in tools.
    pub fn new() -> Self {
        let tools = BUILT_IN.iter().filter_map(|name| Some(((*name).to_owned(), builtin::tool(name)?)));
        Self { tools: tools.collect(), groups: IndexMap::new(), mcp: IndexMap::new() }
    }

    /// Adds a tool under its name, in place of another of that name.
    #[must_use]
    pub fn tool(mut self, tool: impl Tool) -> Self {
        self.tools.insert(tool.spec().name.clone(), Arc::new(tool));
        self
    }

    /// Adds tools that are listed together, by the group's name.
    pub fn group(mut self, name: impl Into<String>, tools: Vec<Arc<dyn Tool>>) -> Self {
        self.groups.insert(name.into(), tools);
        self
    }

    /// Adds an MCP server under its name.
    pub fn mcp(mut self, server: Arc<McpServer>) -> Self {
        self.mcp.insert(server.name().to_owned(), server);
        self
    }

    /// Starts the MCP servers, in the background. Needs a tokio runtime.
    pub fn start(&self) {
        self.mcp.values().for_each(|server| server.start());
    }

    /// Ends the MCP servers, and waits until their processes are gone.
    pub async fn stop(&self) {
        futures::future::join_all(self.mcp.values().map(|server| server.stop())).await;
    }

    /// The tools that an agent lists.
    ///
    /// # Errors
    /// [`UnknownTool`], for the first name that stands for nothing.
    pub fn toolbox<S: AsRef<str>>(&self, names: &[S]) -> Result<Toolbox, UnknownTool> {
        names.iter().map(AsRef::as_ref).try_fold(Toolbox::new(), |toolbox, name| {
            let Some(server) = name.strip_prefix("mcp:") else {
                return match (self.groups.get(name), self.tools.get(name)) {
                    (Some(group), _) => Ok(group.iter().cloned().fold(toolbox, Toolbox::shared_tool)),
                    (None, Some(tool)) => Ok(toolbox.shared_tool(tool.clone())),
                    (None, None) => Err(self.unknown("tool", name)),
                };
            };
            let (server, tool) = server.split_once('/').map_or((server, None), |(server, tool)| (server, Some(tool)));
            let Some(server) = self.mcp.get(server) else { return Err(self.unknown("MCP server", name)) };
            Ok(match tool {
                Some(tool) => toolbox.source(McpServer::only(server, tool)),
                None => toolbox.source(server.clone()),
            })
        })
    }

    fn unknown(&self, what: &'static str, name: &str) -> UnknownTool {
        let known = self.tools.keys().chain(self.groups.keys()).cloned();
        let known = known.chain(self.mcp.keys().map(|server| format!("mcp:{server}")));
        let near = known
            .map(|known| (strsim::normalized_damerau_levenshtein(name, &known), known))
            // Whoever forgot the prefix is nearer than the distance says.
            .map(|(similarity, known)| (if known == format!("mcp:{name}") { 1.0 } else { similarity }, known))
            .filter(|(similarity, _)| *similarity >= 0.5)
            .max_by(|a, b| a.0.total_cmp(&b.0));
        UnknownTool { what, name: name.to_owned(), near: near.map(|(_, near)| near) }
    }
}

impl fmt::Debug for ToolRegistry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolRegistry")
            .field("tools", &self.tools.keys().collect::<Vec<_>>())
            .field("groups", &self.groups.keys().collect::<Vec<_>>())
            .field("mcp", &self.mcp.keys().collect::<Vec<_>>())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::mcp::{McpOptions, McpTransport};

    #[test]
    fn agents_list_tools_servers_and_tools_of_servers() {
        let command = McpTransport::Command { program: "nothing".into(), arguments: vec![], environment: vec![] };
        let registry = ToolRegistry::new().mcp(Arc::new(McpServer::new(McpOptions::new("files", command))));
        let names = registry.toolbox(&["calculator", "mcp:files", "mcp:files/read"]).unwrap().tools();
        assert_eq!(names.iter().map(|tool| tool.name()).collect::<Vec<_>>(), ["calculator"]);
        assert!(registry.toolbox::<&str>(&[]).unwrap().is_empty());
        let wrong = |name: &str| registry.toolbox(&[name]).unwrap_err().to_string();
        assert_eq!(wrong("calculater"), "there is no tool `calculater`; did you mean `calculator`?");
        assert_eq!(wrong("mcp:flies"), "there is no MCP server `mcp:flies`; did you mean `mcp:files`?");
        assert_eq!(wrong("files"), "there is no tool `files`; did you mean `mcp:files`?");
        assert_eq!(wrong("zzz"), "there is no tool `zzz`");
    }
}
