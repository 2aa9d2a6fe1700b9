//! Builds the server's tools from a configuration. It starts no process and makes no request.

use std::sync::Arc;

use crate::{
    server::options::{AgentConfig, Config, ConfigError, Origin, SANDBOX},
    tools::{ToolRegistry, builtin, http::HttpTool, mcp::McpServer, sandbox::Sandbox},
};

/// Builds the tools and MCP servers that a configuration names, beside the built-in tools.
pub(in crate::server) fn build_tools(config: &Config, origin: &Origin) -> Result<ToolRegistry, ConfigError> {
    let mut registry = ToolRegistry::new();
    for (name, options) in &config.tools {
        let table = ["tools", name];
        if builtin::tools().iter().any(|tool| tool.spec().name == *name) {
            return Err(origin.error(&table, "there is a built-in tool of this name"));
        }
        let tool = HttpTool::new(name, options.clone()).map_err(|error| origin.option_error(&table, &error))?;
        registry = registry.tool(tool);
    }
    for (name, options) in &config.mcp {
        let server = McpServer::new(name.as_str(), options.clone());
        let server = server.map_err(|error| origin.option_error(&["mcp", name], &error))?;
        registry = registry.mcp(Arc::new(server));
    }
    let lists_sandbox =
        |agent: &AgentConfig| agent.llm().is_some_and(|llm| llm.options.tools.iter().any(|tool| tool == SANDBOX));
    if let Some((name, _)) = config.agents.iter().find(|(_, agent)| lists_sandbox(agent)) {
        let sandbox = Sandbox::new(config.server.data_dir.join("workspaces"), config.sandbox.clone())
            .map_err(|error| origin.error(&["agents", name, "tools"], &error.to_string()))?;
        registry = registry.sandbox_group(SANDBOX, sandbox);
    }
    Ok(registry)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::options::Sources;

    fn build(text: &str) -> Result<ToolRegistry, String> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("my.toml");
        std::fs::write(&file, text).unwrap();
        let sources = Sources { file: Some(file), environment: vec![], flags: vec![] };
        let loaded = sources.load().map_err(|error| error.to_string());
        let built =
            loaded.and_then(|loaded| build_tools(&loaded.config, &loaded.origin).map_err(|error| error.to_string()));
        built.map_err(|error| error.replace(&format!("{}/", folder.path().display()), ""))
    }

    const WEATHER: &str = "[tools.weather]\nkind = \"http\"\ndescription = \"d\"\nurl = \"https://h/{city}\"\n";
    const FILES: &str = "[mcp.files]\ncommand = [\"x\"]\n";

    #[test]
    fn tools_and_servers_are_built_without_starting_anything() {
        // PATH is in every environment.
        let text = format!(
            "{WEATHER}method = \"POST\"\nheaders = {{ X-App = \"agui\", Authorization = {{ env = \"PATH\", prefix = \"Bearer \" }} }}\n\
             approval = {{ unless = {{ city = \"^K\" }} }}\n\
             [mcp.files]\ncommand = [\"/does/not/exist\", \"a\"]\nenv = {{ A = \"b\" }}\nenv_from = [\"PATH\"]\n\
             approval_of = {{ write = \"always\" }}\ntools = [\"read\", \"write\"]\n\
             [mcp.remote]\nurl = \"https://mcp.example.com/mcp\"\nheaders = {{ Authorization = {{ env = \"PATH\" }} }}\n"
        );
        let registry = build(&text).unwrap();
        let toolbox = registry.toolbox(&["weather", "current_time", "mcp:files", "mcp:remote/x"]).unwrap();
        assert_eq!(toolbox.tools().len(), 2);
    }

    #[test]
    fn errors_name_the_line_and_the_option() {
        for (text, expected) in [
            (format!("{WEATHER}metod = \"GET\""), "my.toml:5:1: unknown key `metod`; did you mean `method`?"),
            (format!("{WEATHER}method = \"TRACE\""), "my.toml:5:10: unknown value `TRACE`"),
            (format!("{WEATHER}approval = \"sometimes\""), "my.toml:5:12: unknown value `sometimes`"),
            (
                format!("{WEATHER}approval = {{ unless = {{ city = \"(\" }} }}"),
                "my.toml:5:12: the pattern of `city` is not a regular expression",
            ),
            (
                format!("{WEATHER}headers = {{ A = {{ env = \"AGUI_NOT_THERE\" }} }}"),
                "my.toml:5:1: tools.weather.headers: the environment variable AGUI_NOT_THERE is not set",
            ),
            (format!("{WEATHER}headers = {{ A = 1 }}"), "my.toml:5:17: expected a text, or a table such as"),
            (
                format!("{WEATHER}headers = {{ \"a b\" = \"\" }}"),
                "my.toml:5:1: tools.weather.headers: \"a b\" is not a valid",
            ),
            (format!("{WEATHER}headers = {{ Host = \"x\" }}"), "my.toml:5:1: tools.weather.headers: `host` is set"),
            (format!("{WEATHER}timeout_secs = 0"), "my.toml:5:1: tools.weather.timeout_secs: at least 1"),
            (format!("{WEATHER}parameters = {{ type = \"array\" }}"), "my.toml:5:1: tools.weather.parameters: "),
            (
                WEATHER.replace("//h", "//{h}"),
                "my.toml:4:1: tools.weather.url: the host is fixed: use places in the path",
            ),
            (WEATHER.replace("weather", "current_time"), "my.toml:1:8: tools.current_time: there is a built-in tool"),
            (WEATHER.replace("weather", "\"a b\""), "my.toml:1:8: tools.a b: a tool's name has"),
            ("[mcp.files]\n".to_owned(), "my.toml:1:6: mcp.files: an MCP server needs `command`"),
            (format!("{FILES}url = \"http://h\""), "my.toml:3:1: mcp.files.url: there is a `command` already"),
            (format!("{FILES}headers = {{ A = \"b\" }}"), "my.toml:3:1: mcp.files.headers: only a `url`"),
            (
                format!("{FILES}env_from = [\"AGUI_NOT_THERE\"]"),
                "my.toml:3:1: mcp.files.env_from: the environment variable AGUI_NOT_THERE is not set",
            ),
            (format!("{FILES}approval_of = {{ write = {{ when = {{}} }} }}"), "my.toml:3:"),
            ("[mcp.a]\nurl = \"file:///x\"".to_owned(), "my.toml:2:1: mcp.a.url: expected a URL"),
            ("[mcp.a]\nurl = \"http://u:p@h/\"".to_owned(), "my.toml:2:1: mcp.a.url: expected a URL"),
            (
                "[mcp.a]\nurl = \"http://h/\"\nheaders = { Accept = \"x\" }".to_owned(),
                "my.toml:3:1: mcp.a.headers: `accept` is set by the protocol",
            ),
        ] {
            let error = build(&text).unwrap_err();
            assert!(error.starts_with(expected), "{text}\n{error}\n{expected}");
        }
    }
}
