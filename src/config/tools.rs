//! Checks the options of tools, MCP servers and the sandbox. The options themselves are in `crate::tools`.

use super::{Config, ConfigError, Origin};
use crate::tools::InvalidOption;

/// The name by which agents list the tools of the sandbox.
pub const SANDBOX: &str = "sandbox";

impl Config {
    pub(super) fn check_tools(&self, origin: &Origin) -> Result<(), ConfigError> {
        self.sandbox.check().map_err(|error| origin.option_error(&["sandbox"], &error))?;
        for (name, tool) in &self.tools {
            let table = ["tools", name];
            if name == SANDBOX {
                return Err(origin.error(&table, "there is a group of tools of this name"));
            }
            if !is_name(name) {
                let message = "a tool's name has 1 to 64 letters, digits, `-` and `_`: models accept no others";
                return Err(origin.error(&table, message));
            }
            tool.check().map_err(|error| origin.option_error(&table, &error))?;
        }
        for (name, server) in &self.mcp {
            let table = ["mcp", name];
            if !is_name(name) {
                let message = "the name of an MCP server has 1 to 64 letters, digits, `-` and `_`";
                return Err(origin.error(&table, message));
            }
            server.check().map_err(|error| origin.option_error(&table, &error))?;
        }
        Ok(())
    }
}

impl Origin {
    /// Returns the error of an option in a table.
    pub(crate) fn option_error(&self, table: &[&str], error: &InvalidOption) -> ConfigError {
        let path: Vec<&str> = table.iter().copied().chain(error.path.iter().map(String::as_str)).collect();
        self.error(&path, &error.problem)
    }
}

fn is_name(name: &str) -> bool {
    (1..=64).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
}
