//! `agui-server check`: says what is wrong with a configuration, and with `--online` what its MCP servers offer.

use std::error::Error;

use super::{
    arguments::{CheckArguments, CommandOptions},
    load::load,
    output::{print_line, print_warning},
    printable::printable_line,
};
use crate::server::{configured::tools::build_tools, options::Loaded};

/// Returns `false` if an MCP server cannot be connected to.
pub(super) async fn check(CheckArguments { file, online, options }: CheckArguments) -> Result<bool, Box<dyn Error>> {
    let (loaded, warnings) = load(CommandOptions { config: options.config.or(file), ..options })?;
    warnings.iter().for_each(|warning| print_warning(warning));
    let agents = loaded.config.agents.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
    print_line(&format!("the configuration is fine: agents {agents}, listening on {}", loaded.config.server.listen));
    if online { check_mcp_servers(&loaded).await } else { Ok(true) }
}

async fn check_mcp_servers(loaded: &Loaded) -> Result<bool, Box<dyn Error>> {
    let registry = build_tools(&loaded.config, &loaded.origin)?;
    let mut are_connected = true;
    for server in registry.mcp_servers() {
        let found = server.probe().await;
        are_connected &= found.is_ok();
        let found = match found {
            Ok(tools) if tools.is_empty() => "no tools".to_owned(),
            Ok(tools) => tools.join(", "),
            Err(reason) => format!("not connected: {reason}"),
        };
        print_line(&printable_line(&format!("mcp:{}: {found}", server.name())));
    }
    Ok(are_connected)
}
