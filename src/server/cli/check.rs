//! `agui-server check`: says what is wrong with a configuration, and with `--online` what its MCP servers offer.

use std::error::Error;

use futures::future::join_all;

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
    let probed = join_all(registry.mcp_servers().map(async |server| (server.name(), server.probe().await))).await;
    for (name, found) in &probed {
        let found = match found {
            Ok(tools) if tools.is_empty() => "no tools",
            Ok(tools) => &tools.join(", "),
            Err(reason) => &format!("not connected: {reason}"),
        };
        print_line(&printable_line(&format!("mcp:{name}: {found}")));
    }
    Ok(probed.iter().all(|(_, found)| found.is_ok()))
}
