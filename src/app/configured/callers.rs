//! The facts about a run's caller that the configured tools and MCP servers send on (`headers_from`).

use crate::{
    config::Config,
    tools::{CallerHeader, CallerValue},
};

/// Returns the claims that tools need. Principals keep no others.
pub(super) fn needed_claims(config: &Config) -> Vec<String> {
    let mut claims: Vec<_> = sources(config)
        .filter_map(|from| match from {
            CallerValue::Claim(name) => Some(name.clone()),
            _ => None,
        })
        .collect();
    claims.sort();
    claims.dedup();
    claims
}

/// Returns the request headers that tools need, in lower case.
pub(super) fn needed_headers(config: &Config) -> impl Iterator<Item = String> {
    sources(config).filter_map(|from| match from {
        CallerValue::Header(name) => Some(name.clone()),
        _ => None,
    })
}

fn sources(config: &Config) -> impl Iterator<Item = &CallerValue> {
    let of_tools = config.tools.values().flat_map(|tool| tool.headers_from.values());
    let of_servers = config.mcp.values().flat_map(|server| server.headers_from.values());
    of_tools.chain(of_servers).map(|header: &CallerHeader| &header.from)
}
