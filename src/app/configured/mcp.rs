//! Builds MCP servers from a configuration. It starts none of them.

use std::sync::Arc;

use crate::{
    config::{Config, ConfigError, Origin},
    tools::{ToolRegistry, mcp::McpServer},
};

/// Adds the configured MCP servers to the registry.
pub(super) fn add_mcp_servers(
    mut registry: ToolRegistry,
    config: &Config,
    origin: &Origin,
) -> Result<ToolRegistry, ConfigError> {
    for (name, options) in &config.mcp {
        let server = McpServer::new(name.as_str(), options.clone());
        let server = server.map_err(|error| origin.option_error(&["mcp", name], &error))?;
        registry = registry.mcp(Arc::new(server));
    }
    Ok(registry)
}
