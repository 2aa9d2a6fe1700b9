//! Checks the options of tools, MCP servers and the sandbox. The options themselves are in `crate::tools`.

use indexmap::IndexMap;

use super::{diagnose::ConfigError, origin::Origin};
use crate::{
    base::InvalidOption,
    tools::{http::HttpToolOptions, mcp::McpServerOptions, sandbox::SandboxOptions},
};

/// The name by which agents list the tools of the sandbox.
pub(crate) const SANDBOX: &str = "sandbox";

pub(super) fn check(
    tools: &IndexMap<String, HttpToolOptions>,
    servers: &IndexMap<String, McpServerOptions>,
    sandbox: &SandboxOptions,
    origin: &Origin,
) -> Result<(), ConfigError> {
    sandbox.check().map_err(|error| origin.option_error(&["sandbox"], &error))?;
    for (name, tool) in tools {
        let table = ["tools", name];
        if name == SANDBOX {
            return Err(origin.error(&table, "the name of a tool group cannot be used"));
        }
        if !is_name(name) {
            let message = "a tool's name has 1 to 64 letters, digits, `-` and `_`: models accept no others";
            return Err(origin.error(&table, message));
        }
        tool.check().map_err(|error| origin.option_error(&table, &error))?;
    }
    for (name, server) in servers {
        let table = ["mcp", name];
        if !is_name(name) {
            let message = "the name of an MCP server has 1 to 64 letters, digits, `-` and `_`";
            return Err(origin.error(&table, message));
        }
        server.check().map_err(|error| origin.option_error(&table, &error))?;
    }
    Ok(())
}

impl Origin {
    pub(crate) fn option_error(&self, table: &[&str], error: &InvalidOption) -> ConfigError {
        let path: Vec<&str> = table.iter().copied().chain(error.path.iter().map(String::as_str)).collect();
        self.error(&path, &error.problem)
    }
}

fn is_name(name: &str) -> bool {
    (1..=64).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
}
