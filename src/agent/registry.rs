//! The agents of a server, by name.

use std::sync::Arc;

use indexmap::IndexMap;

use super::Agent;
use crate::protocol::AgentCapabilities;

/// An agent and its name.
#[derive(Clone)]
pub(crate) struct AgentEntry {
    pub(crate) name: Arc<str>,
    pub(crate) agent: Arc<dyn Agent>,
}

impl AgentEntry {
    /// Returns the name.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Returns the capabilities that the agent declares.
    pub(crate) fn capabilities(&self) -> AgentCapabilities {
        self.agent.capabilities()
    }
}

#[derive(Default)]
pub(crate) struct AgentRegistry {
    agents: IndexMap<Arc<str>, Arc<dyn Agent>>,
    default: Option<Arc<str>>,
}

impl AgentRegistry {
    pub(crate) fn insert(&mut self, name: Arc<str>, agent: Arc<dyn Agent>) {
        self.agents.insert(name, agent);
    }

    pub(crate) fn set_default(&mut self, name: Arc<str>) {
        self.default = Some(name);
    }

    pub(crate) fn default_name(&self) -> Option<&str> {
        self.default.as_deref().or_else(|| self.agents.keys().next().map(|name| &**name))
    }

    pub(crate) fn get(&self, name: Option<&str>) -> Option<AgentEntry> {
        let (name, agent) = self.agents.get_key_value(name.or(self.default_name())?)?;
        Some(AgentEntry { name: name.clone(), agent: agent.clone() })
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = AgentEntry> + '_ {
        self.agents
            .iter()
            .map(|(name, agent)| AgentEntry { name: name.clone(), agent: agent.clone() })
    }
}
