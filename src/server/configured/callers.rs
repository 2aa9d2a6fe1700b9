//! The facts about a run's caller that the configured agents, tools and MCP servers send on.

use std::collections::BTreeSet;

use super::llm::system_prompt;
use crate::server::options::{AgentKind, Config, ConfigError, Origin};
use agui_tools::host::{CallerHeader, CallerValue};

/// Returns the claims that tools, `[[allow]]` and system prompts need. Principals keep no others.
pub(super) fn needed_claims(config: &Config, origin: &Origin) -> Result<Vec<String>, ConfigError> {
    let llm_agents = config.agents.iter().filter_map(|(name, agent)| Some((name, agent.llm()?)));
    let prompts = llm_agents.map(|(name, llm)| system_prompt(name, &llm.options, origin));
    let prompts: Vec<_> = prompts.filter_map(Result::transpose).collect::<Result<_, _>>()?;
    let claims: BTreeSet<_> = sources(config)
        .filter_map(|from| match from {
            CallerValue::Claim(name) => Some(name.clone()),
            _ => None,
        })
        .chain(config.allow.iter().filter_map(|rule| rule.claim.clone()))
        .chain(prompts.iter().flat_map(|prompt| prompt.claims().map(str::to_owned)))
        .collect();
    Ok(claims.into_iter().collect())
}

/// Returns the request headers that any agent, tool or recording gets, in lower case.
pub(in crate::server) fn pass_headers(config: &Config) -> Vec<String> {
    let of_agents = config.agents.values().flat_map(|agent| match &agent.kind {
        AgentKind::Remote(options) => options.pass_headers.as_slice(),
        _ => &[],
    });
    let of_tools = sources(config).filter_map(|from| match from {
        CallerValue::Header(name) => Some(name),
        _ => None,
    });
    let all = of_agents
        .chain(of_tools)
        .chain(&config.record.headers)
        .map(|name| name.to_ascii_lowercase());
    all.collect::<BTreeSet<_>>().into_iter().collect()
}

fn sources(config: &Config) -> impl Iterator<Item = &CallerValue> {
    let of_tools = config.tools.values().flat_map(|tool| tool.headers_from.values());
    let of_servers = config.mcp.values().flat_map(|server| server.headers_from.values());
    of_tools.chain(of_servers).map(|header: &CallerHeader| &header.from)
}
