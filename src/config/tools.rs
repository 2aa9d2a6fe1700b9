//! What can be set about the server's own tools.

use indexmap::IndexMap;
use serde::Deserialize;

use super::{Config, ConfigError, Origin};

/// What agents list for the tools of the sandbox.
pub const SANDBOX: &str = "sandbox";

/// A tool of the server's own.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tool {
    /// What does the work.
    pub kind: ToolKind,
    /// What it does, for the model to decide when to use it.
    pub description: String,
    /// The address, with places for arguments in braces.
    pub url: String,
    /// The method.
    #[serde(default)]
    pub method: Method,
    /// A JSON Schema of the arguments; if left out, a text for each place of the address.
    pub parameters: Option<serde_json::Value>,
    /// Headers of the request.
    #[serde(default)]
    pub headers: IndexMap<String, Header>,
    /// Which part of a JSON answer is the result, as a JSON Pointer.
    pub result: Option<String>,
    /// When somebody has to agree to a call.
    #[serde(default)]
    pub approval: Approval,
    /// How long a call may take.
    #[serde(default = "Tool::timeout_secs")]
    pub timeout_secs: u64,
    /// The longest answer.
    #[serde(default = "Tool::max_result_bytes")]
    pub max_result_bytes: usize,
}

/// What does a tool's work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolKind {
    /// A web service.
    Http,
}

/// How a web service is asked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
#[allow(missing_docs)]
pub enum Method {
    #[default]
    Get,
    Head,
    Delete,
    Post,
    Put,
    Patch,
}

impl Method {
    /// The method as it is sent.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Head => "HEAD",
            Self::Delete => "DELETE",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Patch => "PATCH",
        }
    }
}

/// A header's value.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged, expecting = "expected a text, or a table such as { env = \"VARIABLE\", prefix = \"Bearer \" }")]
pub enum Header {
    /// As it is.
    Plain(String),
    /// In an environment variable.
    Secret(SecretHeader),
}

/// A header's value that is secret.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SecretHeader {
    /// The variable.
    pub env: String,
    /// What stands before it.
    #[serde(default)]
    pub prefix: String,
}

/// When somebody has to agree to a call.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Approval {
    /// Never.
    #[default]
    Never,
    /// Always.
    Always,
    /// If one of these arguments matches its pattern.
    When(IndexMap<String, String>),
    /// Unless all of these arguments match their patterns.
    Unless(IndexMap<String, String>),
}

/// An MCP server, whose tools agents may use.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mcp {
    /// The program to start, with its arguments.
    pub command: Option<Vec<String>>,
    /// The address to speak streamable HTTP with.
    pub url: Option<String>,
    /// Variables of the program.
    #[serde(default)]
    pub env: IndexMap<String, String>,
    /// Variables of this server that are passed on to the program.
    #[serde(default)]
    pub env_from: Vec<String>,
    /// Headers of the requests to the address.
    #[serde(default)]
    pub headers: IndexMap<String, Header>,
    /// The tools that are used; all of them if left out.
    pub tools: Option<Vec<String>>,
    /// What stands before the names of its tools.
    #[serde(default)]
    pub prefix: String,
    /// When somebody has to agree to a call.
    #[serde(default)]
    pub approval: Approval,
    /// The same for single tools.
    #[serde(default)]
    pub approval_of: IndexMap<String, Approval>,
    /// How long a call may take.
    #[serde(default = "Mcp::timeout_secs")]
    pub timeout_secs: u64,
    /// The longest result.
    #[serde(default = "Mcp::max_result_bytes")]
    pub max_result_bytes: usize,
}

/// What limits the commands of the tool group `sandbox`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Sandbox {
    /// How long one may take.
    pub timeout_secs: u64,
    /// How much memory one may take, in megabytes.
    pub memory_mb: u64,
    /// How many processes and threads one may be at a time.
    pub processes: u64,
    /// The most that is kept of what one says, in bytes.
    pub max_output_bytes: usize,
    /// The largest workspace, in megabytes.
    pub workspace_mb: u64,
    /// When somebody has to agree to a call.
    pub approval: Approval,
    /// The same for single tools.
    pub approval_of: IndexMap<String, Approval>,
}

impl Default for Sandbox {
    fn default() -> Self {
        Self {
            timeout_secs: 30,
            memory_mb: 512,
            processes: 64,
            max_output_bytes: 64 * 1024,
            workspace_mb: 256,
            approval: Approval::Never,
            approval_of: IndexMap::new(),
        }
    }
}

impl Tool {
    fn timeout_secs() -> u64 {
        30
    }

    fn max_result_bytes() -> usize {
        256 * 1024
    }
}

impl Mcp {
    fn timeout_secs() -> u64 {
        60
    }

    fn max_result_bytes() -> usize {
        1024 * 1024
    }
}

impl Config {
    pub(super) fn check_tools(&self, origin: &Origin) -> Result<(), ConfigError> {
        self.check_sandbox(origin)?;
        for (name, tool) in &self.tools {
            if name == SANDBOX {
                return Err(origin.error(&["tools", name], "there is a group of tools of this name"));
            }
            let at = |option: &str, message: &str| Err(origin.error(&["tools", name, option], message));
            if !is_name(name) {
                let message = "a tool's name is up to 64 letters, digits, `-` and `_`: models take no others";
                return Err(origin.error(&["tools", name], message));
            }
            if tool.timeout_secs == 0 {
                return at("timeout_secs", "at least 1 is needed");
            }
            if tool.max_result_bytes == 0 {
                return at("max_result_bytes", "at least 1 is needed");
            }
        }
        for (name, server) in &self.mcp {
            let at = |option: &str, message: &str| Err(origin.error(&["mcp", name, option], message));
            if !is_name(name) {
                let message = "the name of an MCP server is up to 64 letters, digits, `-` and `_`";
                return Err(origin.error(&["mcp", name], message));
            }
            match (&server.command, &server.url) {
                (None, None) => {
                    let message = "an MCP server needs `command`, to be started, or `url`, to be reached";
                    return Err(origin.error(&["mcp", name], message));
                }
                (Some(_), Some(_)) => return at("url", "there is a `command` already; one of them is enough"),
                (Some(command), None) if command.iter().all(String::is_empty) => {
                    return at("command", "expected a program and its arguments");
                }
                (Some(_), None) if !server.headers.is_empty() => return at("headers", "only a `url` has headers"),
                (None, Some(_)) if !server.env.is_empty() => return at("env", "only a `command` has an environment"),
                (None, Some(_)) if !server.env_from.is_empty() => {
                    return at("env_from", "only a `command` has an environment");
                }
                _ => {}
            }
            if !server.prefix.is_empty() && !is_name(&server.prefix) {
                return at("prefix", "names of tools have letters, digits, `-` and `_`");
            }
            if server.timeout_secs == 0 {
                return at("timeout_secs", "at least 1 is needed");
            }
            if server.max_result_bytes == 0 {
                return at("max_result_bytes", "at least 1 is needed");
            }
        }
        Ok(())
    }

    fn check_sandbox(&self, origin: &Origin) -> Result<(), ConfigError> {
        let sandbox = &self.sandbox;
        let at = |option: &str, message: &str| Err(origin.error(&["sandbox", option], message));
        for (option, value) in [("timeout_secs", sandbox.timeout_secs), ("workspace_mb", sandbox.workspace_mb)] {
            if value == 0 {
                return at(option, "at least 1 is needed");
            }
        }
        if sandbox.memory_mb < 16 {
            return at("memory_mb", "at least 16 are needed");
        }
        if sandbox.processes < 4 {
            return at("processes", "at least 4 are needed");
        }
        if sandbox.max_output_bytes == 0 {
            return at("max_output_bytes", "at least 1 is needed");
        }
        let tools = ["run_command", "read_file", "write_file", "list_files"];
        match sandbox.approval_of.keys().find(|name| !tools.contains(&name.as_str())) {
            Some(name) => {
                let message = format!("the sandbox has {}, but no `{name}`", tools.join(", "));
                Err(origin.error(&["sandbox", "approval_of", name], &message))
            }
            None => Ok(()),
        }
    }
}

fn is_name(name: &str) -> bool {
    (1..=64).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
}
