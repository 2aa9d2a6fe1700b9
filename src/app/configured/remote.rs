//! Agents that are other AG-UI endpoints (`kind = "remote"`), by their configuration.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use crate::{
    agent::Agent,
    agents::{Remote, RemoteError, RemoteOptions},
    config::{self, Config, ConfigError, Origin},
};

/// Builds the agent.
pub(super) fn build_remote(
    name: &str,
    agent: &config::AgentConfig,
    origin: &Origin,
) -> Result<Arc<dyn Agent>, ConfigError> {
    let mut options = RemoteOptions::new(agent.url.as_deref().unwrap_or_default());
    options.description = agent.description.clone();
    options.pass_headers = agent.pass_headers.clone().unwrap_or_default();
    options.headers_env = agent.headers_env.clone().unwrap_or_default();
    if let Some(seconds) = agent.connect_timeout_secs {
        options.connect_timeout = Duration::from_secs(seconds);
    }
    if let Some(seconds) = agent.idle_timeout_secs {
        options.idle_timeout = Duration::from_secs(seconds);
    }
    match Remote::new(options) {
        Ok(remote) => Ok(Arc::new(remote)),
        Err(RemoteError::Option { option, problem }) => Err(origin.error(&["agents", name, option], &problem)),
        Err(error) => Err(origin.error(&["agents", name], &error.to_string())),
    }
}

/// Returns the request headers that any agent gets, in lower case.
pub(super) fn pass_headers(config: &Config) -> Vec<String> {
    let named = config.agents.values().flat_map(|agent| agent.pass_headers.iter().flatten());
    named.map(|name| name.to_ascii_lowercase()).collect::<BTreeSet<_>>().into_iter().collect()
}
