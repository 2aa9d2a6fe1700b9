//! What can be set about the guide's dialect.

use serde::Deserialize;

use super::{Config, ConfigError, Origin, diagnose::nearest};

/// The guide's two routes.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Guide {
    /// Whether there are any.
    pub enabled: bool,
    /// The agent behind `/agent/chat/stream`; the default one if left out.
    pub chat: Option<String>,
    /// The agent behind `/agent/agent/stream`; the default one if left out.
    pub agent: Option<String>,
}

impl Default for Guide {
    fn default() -> Self {
        Self { enabled: true, chat: None, agent: None }
    }
}

impl Config {
    pub(super) fn check_guide(&self, origin: &Origin) -> Result<(), ConfigError> {
        for (option, name) in [("chat", &self.guide.chat), ("agent", &self.guide.agent)] {
            let Some(name) = name.as_ref().filter(|name| !self.agents.contains_key(*name)) else { continue };
            let near = nearest(name, self.agents.keys().map(String::as_str));
            let near = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
            return Err(origin.error(&["guide", option], &format!("there is no agent `{name}`{near}")));
        }
        Ok(())
    }
}
