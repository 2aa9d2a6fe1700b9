//! The options of a configuration as the options of the parts of a server.

use std::collections::HashSet;

use super::{callers::needed_claims, jwt::build_jwt};
use crate::{
    auth::{ApiKey, ApiKeys, Authenticator},
    http::AgentPath,
    server::options::{AuthMode, Config, ConfigError, Origin},
};
use agui_base::upstream::secret_names::secret_variable;
use agui_run::ThreadOptions;

pub(in crate::server) fn thread_options(config: &Config) -> ThreadOptions {
    let of_agents = config
        .agents
        .iter()
        .filter_map(|(name, agent)| Some((name.clone(), agent.common.on_disconnect?)));
    let mut options = config.thread_options();
    options.on_disconnect_of = of_agents.collect();
    options
}

pub(in crate::server) fn build_auth(
    config: &Config,
    origin: &Origin,
) -> Result<Authenticator, ConfigError> {
    let auth = &config.auth;
    match auth.mode {
        Some(AuthMode::ApiKey) => {}
        Some(AuthMode::Jwt) => {
            return build_jwt(&auth.jwt, needed_claims(config, origin)?, origin)
                .map(Authenticator::from);
        }
        Some(AuthMode::None) | None => return Ok(Authenticator::disabled()),
    }
    let keys = auth.api_keys.iter().map(|key| {
        let fault = |problem: String| {
            origin.error(&["auth", "api_keys"], &format!("key {:?}: {problem}", key.name))
        };
        if let Some(digest) = &key.sha256 {
            return ApiKey::from_sha256(key.name.as_str(), digest)
                .map_err(|error| fault(error.to_string()));
        }
        let secret = secret_variable(key.env.as_deref().unwrap_or_default()).map_err(fault)?;
        Ok(ApiKey::from_secret(key.name.as_str(), &secret))
    });
    let keys = ApiKeys::new(keys.collect::<Result<Vec<_>, _>>()?);
    match keys.find_shared() {
        None => Ok(keys.into()),
        Some([one, other]) => {
            let problem =
                format!("{one:?} and {other:?} have the same key: give each name a key of its own");
            Err(origin.error(&["auth", "api_keys"], &problem))
        }
    }
}

pub(in crate::server) fn agent_paths(config: &Config) -> Vec<AgentPath> {
    let paths =
        config.agents.iter().filter_map(|(name, agent)| Some((name, agent.common.path.clone()?)));
    paths.map(|(name, path)| AgentPath { path, agent: name.as_str().into() }).collect()
}

pub(in crate::server) fn without_subagents(config: &Config) -> HashSet<String> {
    let agents =
        config.agents.iter().filter(|(_, agent)| agent.common.subagent_events == Some(false));
    agents.map(|(name, _)| name.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::options::Loaded;

    #[test]
    fn as_many_runs_may_be_detached_as_run_unless_an_option_says_otherwise() {
        let detached = |text: &str| {
            thread_options(&Loaded::from_toml_str(text).unwrap().config).runs.max_detached()
        };
        assert_eq!(detached(""), ThreadOptions::default().runs.max_detached());
        assert_eq!(detached("[runs]\nmax_concurrent = 7"), 7);
        assert_eq!(detached("[runs]\nmax_concurrent = 7\nmax_detached = 0"), 0);
    }
}
