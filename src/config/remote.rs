//! Agents of `kind = "remote"`: their keys as [`RemoteOptions`], which check them.

use std::time::Duration;

use super::{agents::AgentConfig, diagnose::ConfigError, origin::Origin};
use crate::agents::{RemoteError, RemoteOptions};

impl AgentConfig {
    /// Returns the options of a remote agent. An absent `url` becomes an empty one, which is invalid.
    pub(crate) fn remote_options(&self) -> RemoteOptions {
        let mut options = RemoteOptions::new(self.url.as_deref().unwrap_or_default());
        options.description = self.description.clone();
        options.pass_headers = self.pass_headers.clone().unwrap_or_default();
        options.headers_env = self.headers_env.clone().unwrap_or_default();
        if let Some(seconds) = self.connect_timeout_secs {
            options.connect_timeout = Duration::from_secs(seconds);
        }
        if let Some(seconds) = self.idle_timeout_secs {
            options.idle_timeout = Duration::from_secs(seconds);
        }
        options
    }
}

pub(super) fn check(name: &str, agent: &AgentConfig, origin: &Origin) -> Result<(), ConfigError> {
    if agent.url.is_none() {
        return Err(origin.error(&["agents", name], "kind = \"remote\" needs `url`, an AG-UI endpoint"));
    }
    agent.remote_options().check().map_err(|error| remote_error(name, &error, origin))
}

/// Returns the error with the place of the option.
pub(crate) fn remote_error(name: &str, error: &RemoteError, origin: &Origin) -> ConfigError {
    match error {
        RemoteError::Option { option, problem } => origin.error(&["agents", name, option], problem),
        error => origin.error(&["agents", name], &error.to_string()),
    }
}
