//! From a configuration to the server's own tools. Nothing is started here, and nobody is asked.

use std::{collections::HashMap, sync::Arc, time::Duration};

use indexmap::IndexMap;
use reqwest::{
    Method,
    header::{HeaderMap, HeaderName, HeaderValue},
};

use crate::{
    config::{self, Config, ConfigError, Header, Origin, SANDBOX},
    tools::{
        ApprovalRule, ToolRegistry,
        builtin::BUILT_IN,
        http::{HttpOptions, HttpTool},
        mcp::{McpOptions, McpServer, McpTransport},
        sandbox::{Sandbox, SandboxOptions},
    },
};

/// The tools and MCP servers that a configuration names, and the built-in tools.
pub(super) fn build_tools(config: &Config, origin: &Origin) -> Result<ToolRegistry, ConfigError> {
    let mut registry = ToolRegistry::new();
    for (name, tool) in &config.tools {
        registry = registry.tool(build_http(name, tool, origin)?);
    }
    for (name, server) in &config.mcp {
        registry = registry.mcp(Arc::new(build_mcp(name, server, origin)?));
    }
    let lists_sandbox = |agent: &config::Agent| agent.tools.iter().flatten().any(|tool| tool == SANDBOX);
    if let Some((name, _)) = config.agents.iter().find(|(_, agent)| lists_sandbox(agent)) {
        let sandbox = Sandbox::new(sandbox_options(config, origin)?);
        let sandbox = sandbox.map_err(|error| origin.error(&["agents", name, "tools"], &error.to_string()))?;
        registry = registry.group(SANDBOX, sandbox.tools());
    }
    Ok(registry)
}

fn sandbox_options(config: &Config, origin: &Origin) -> Result<SandboxOptions, ConfigError> {
    let sandbox = &config.sandbox;
    let at = |place: &[&str], message: &str| origin.error(place, message);
    let own = sandbox.approval_of.iter().map(|(tool, rule)| {
        let rule = approval(rule).map_err(|message| at(&["sandbox", "approval_of", tool], &message))?;
        Ok((tool.clone(), rule))
    });
    Ok(SandboxOptions {
        timeout: Duration::from_secs(sandbox.timeout_secs),
        memory: sandbox.memory_mb.saturating_mul(1 << 20),
        processes: sandbox.processes,
        max_output: sandbox.max_output_bytes,
        workspace_size: sandbox.workspace_mb.saturating_mul(1 << 20),
        approval: approval(&sandbox.approval).map_err(|message| at(&["sandbox", "approval"], &message))?,
        approval_of: own.collect::<Result<_, ConfigError>>()?,
        ..SandboxOptions::new(config.server.data_dir.join("workspaces"))
    })
}

fn build_http(name: &str, tool: &config::Tool, origin: &Origin) -> Result<HttpTool, ConfigError> {
    let at = |option: &str, message: &str| origin.error(&["tools", name, option], message);
    if BUILT_IN.contains(&name) {
        return Err(origin.error(&["tools", name], "there is a built-in tool of this name"));
    }
    let options = HttpOptions {
        name: name.to_owned(),
        description: tool.description.clone(),
        parameters: tool.parameters.clone(),
        method: Method::from_bytes(tool.method.as_str().as_bytes()).unwrap_or_default(),
        url: tool.url.clone(),
        headers: headers(&tool.headers).map_err(|message| at("headers", &message))?,
        result: tool.result.clone(),
        approval: approval(&tool.approval).map_err(|message| at("approval", &message))?,
        timeout: Duration::from_secs(tool.timeout_secs),
        max_result_bytes: tool.max_result_bytes,
    };
    HttpTool::new(options).map_err(|error| at(error.option, &error.problem))
}

fn build_mcp(name: &str, server: &config::Mcp, origin: &Origin) -> Result<McpServer, ConfigError> {
    let at = |option: &str, message: &str| origin.error(&["mcp", name, option], message);
    let transport = match (&server.url, server.command.as_deref()) {
        (Some(url), _) => {
            let fine = reqwest::Url::parse(url).is_ok_and(|url| {
                matches!(url.scheme(), "http" | "https") && url.username().is_empty() && url.password().is_none()
            });
            if !fine {
                return Err(at(
                    "url",
                    "expected an address such as \"https://mcp.example.com/mcp\", without credentials",
                ));
            }
            let headers = headers(&server.headers).map_err(|message| at("headers", &message))?;
            let taken = ["accept", "mcp-session-id", "mcp-protocol-version", "last-event-id"];
            if let Some(name) = taken.iter().find(|name| headers.contains_key(**name)) {
                return Err(at("headers", &format!("`{name}` belongs to the protocol")));
            }
            McpTransport::Http { url: url.clone(), headers }
        }
        (None, Some([program, arguments @ ..])) => {
            let mut environment: Vec<_> =
                server.env.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
            for variable in &server.env_from {
                let value = variable_of(variable).map_err(|message| at("env_from", &message))?;
                environment.push((variable.clone(), value));
            }
            McpTransport::Command { program: program.clone(), arguments: arguments.to_vec(), environment }
        }
        // The configuration was checked before.
        (None, _) => return Err(origin.error(&["mcp", name], "an MCP server needs `command` or `url`")),
    };
    let mut options = McpOptions::new(name, transport);
    options.tools = server.tools.clone();
    options.prefix = server.prefix.clone();
    options.approval = approval(&server.approval).map_err(|message| at("approval", &message))?;
    let own = server.approval_of.iter().map(|(tool, rule)| {
        let place = ["mcp", name, "approval_of", tool];
        approval(rule).map(|rule| (tool.clone(), rule)).map_err(|message| origin.error(&place, &message))
    });
    options.approval_of = own.collect::<Result<HashMap<_, _>, _>>()?;
    options.timeout = Duration::from_secs(server.timeout_secs);
    options.max_result_bytes = server.max_result_bytes;
    Ok(McpServer::new(options))
}

fn approval(rule: &config::Approval) -> Result<ApprovalRule, String> {
    let texts = |patterns: &IndexMap<String, String>| -> Vec<(String, String)> {
        patterns.iter().map(|(name, pattern)| (name.clone(), pattern.clone())).collect()
    };
    match rule {
        config::Approval::Never => Ok(ApprovalRule::Never),
        config::Approval::Always => Ok(ApprovalRule::Always),
        config::Approval::When(patterns) => {
            ApprovalRule::when(texts(patterns).iter().map(|(name, pattern)| (name.as_str(), pattern.as_str())))
        }
        config::Approval::Unless(patterns) => {
            ApprovalRule::unless(texts(patterns).iter().map(|(name, pattern)| (name.as_str(), pattern.as_str())))
        }
    }
}

fn headers(headers: &IndexMap<String, Header>) -> Result<HeaderMap, String> {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        let header = HeaderName::from_bytes(name.as_bytes()).map_err(|_| format!("{name:?} is no name of a header"))?;
        let (text, secret) = match value {
            Header::Plain(text) => (text.clone(), is_secret(&header)),
            Header::Secret(secret) => (format!("{}{}", secret.prefix, variable_of(&secret.env)?), true),
        };
        let mut value =
            HeaderValue::from_str(&text).map_err(|_| format!("the value of `{name}` cannot be one of a header"))?;
        value.set_sensitive(secret);
        map.insert(header, value);
    }
    Ok(map)
}

/// Whether a header that stands in the file as it is holds a secret all the same.
fn is_secret(header: &HeaderName) -> bool {
    ["auth", "cookie", "key", "token", "secret"].iter().any(|part| header.as_str().contains(part))
}

fn variable_of(name: &str) -> Result<String, String> {
    match std::env::var(name) {
        Ok(value) if !value.trim().is_empty() => Ok(value.trim().to_owned()),
        _ => Err(format!("the environment variable {name} is not set")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Sources;

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
        let toolbox = registry.toolbox(&["weather", "calculator", "mcp:files", "mcp:remote/x"]).unwrap();
        assert_eq!(toolbox.tools().len(), 2);
    }

    #[test]
    fn what_is_wrong_is_pointed_at() {
        for (text, expected) in [
            (format!("{WEATHER}metod = \"GET\""), "my.toml:5:1: unknown key `metod`; did you mean `method`?"),
            (format!("{WEATHER}method = \"TRACE\""), "my.toml:5:10: unknown value `TRACE`"),
            (format!("{WEATHER}approval = \"sometimes\""), "my.toml:5:12: unknown value `sometimes`"),
            (
                format!("{WEATHER}approval = {{ unless = {{ city = \"(\" }} }}"),
                "my.toml:5:1: tools.weather.approval: the pattern of `city` is no regular expression",
            ),
            (
                format!("{WEATHER}headers = {{ A = {{ env = \"AGUI_NOT_THERE\" }} }}"),
                "my.toml:5:1: tools.weather.headers: the environment variable AGUI_NOT_THERE is not set",
            ),
            (format!("{WEATHER}headers = {{ A = 1 }}"), "my.toml:5:17: expected a text, or a table such as"),
            (
                format!("{WEATHER}headers = {{ \"a b\" = \"\" }}"),
                "my.toml:5:1: tools.weather.headers: \"a b\" is no name",
            ),
            (format!("{WEATHER}headers = {{ Host = \"x\" }}"), "my.toml:5:1: tools.weather.headers: `host` is set"),
            (format!("{WEATHER}timeout_secs = 0"), "my.toml:5:1: tools.weather.timeout_secs: at least 1"),
            (format!("{WEATHER}parameters = {{ type = \"array\" }}"), "my.toml:5:1: tools.weather.parameters: "),
            (
                WEATHER.replace("//h", "//{h}"),
                "my.toml:4:1: tools.weather.url: the host is fixed: arguments have their places behind it",
            ),
            (WEATHER.replace("weather", "calculator"), "my.toml:1:8: tools.calculator: there is a built-in tool"),
            (WEATHER.replace("weather", "\"a b\""), "my.toml:1:8: tools.a b: a tool's name is"),
            ("[mcp.files]\n".to_owned(), "my.toml:1:6: mcp.files: an MCP server needs `command`"),
            (format!("{FILES}url = \"http://h\""), "my.toml:3:1: mcp.files.url: there is a `command` already"),
            (format!("{FILES}headers = {{ A = \"b\" }}"), "my.toml:3:1: mcp.files.headers: only a `url`"),
            (
                format!("{FILES}env_from = [\"AGUI_NOT_THERE\"]"),
                "my.toml:3:1: mcp.files.env_from: the environment variable AGUI_NOT_THERE is not set",
            ),
            (
                format!("{FILES}approval_of = {{ write = {{ when = {{}} }} }}"),
                "my.toml:3:17: mcp.files.approval_of.write: at least one argument",
            ),
            ("[mcp.a]\nurl = \"file:///x\"".to_owned(), "my.toml:2:1: mcp.a.url: expected an address"),
            ("[mcp.a]\nurl = \"http://u:p@h/\"".to_owned(), "my.toml:2:1: mcp.a.url: expected an address"),
            (
                "[mcp.a]\nurl = \"http://h/\"\nheaders = { Accept = \"x\" }".to_owned(),
                "my.toml:3:1: mcp.a.headers: `accept` belongs to the protocol",
            ),
        ] {
            let error = build(&text).unwrap_err();
            assert!(error.starts_with(expected), "{text}\n{error}\n{expected}");
        }
    }
}
