//! Agents that are other AG-UI endpoints (`kind = "remote"`), by their configuration.

use std::{collections::BTreeSet, sync::Arc};

use super::callers::needed_headers;
use crate::{
    agent::Agent,
    agents::Remote,
    config::{self, Config, ConfigError, Origin},
};

/// Builds the agent.
pub(super) fn build_remote(
    name: &str,
    agent: &config::AgentConfig,
    origin: &Origin,
) -> Result<Arc<dyn Agent>, ConfigError> {
    match Remote::new(agent.remote_options()) {
        Ok(remote) => Ok(Arc::new(remote)),
        Err(error) => Err(config::remote_error(name, &error, origin)),
    }
}

/// Returns the request headers that any agent, tool or recording gets, in lower case.
pub(super) fn pass_headers(config: &Config) -> Vec<String> {
    let named = config.agents.values().flat_map(|agent| agent.pass_headers.iter().flatten());
    let of_agents = named.map(|name| name.to_ascii_lowercase());
    of_agents
        .chain(needed_headers(config))
        .chain(config.record.headers.iter().cloned())
        .collect::<BTreeSet<_>>()
        .into_iter()
        .collect()
}
