//! The agents of a server, by name.

use std::sync::Arc;

use indexmap::IndexMap;

use super::Agent;
use agui_protocol::AgentCapabilities;

/// An agent and its name.
#[derive(Clone)]
pub struct AgentEntry {
    pub name: Arc<str>,
    pub agent: Arc<dyn Agent>,
}

impl AgentEntry {
    /// Returns the name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the capabilities that the agent declares.
    pub fn capabilities(&self) -> AgentCapabilities {
        self.agent.capabilities()
    }
}

#[derive(Default)]
pub struct AgentRegistry {
    agents: IndexMap<Arc<str>, Arc<dyn Agent>>,
    default: Option<Arc<str>>,
}

impl AgentRegistry {
    pub fn insert(&mut self, name: Arc<str>, agent: Arc<dyn Agent>) {
        self.agents.insert(name, agent);
    }

    pub fn set_default(&mut self, name: Arc<str>) {
        self.default = Some(name);
    }

    pub fn default_name(&self) -> Option<&str> {
        self.default.as_deref().or_else(|| self.agents.keys().next().map(|name| &**name))
    }

    pub fn get(&self, name: Option<&str>) -> Option<AgentEntry> {
        let (name, agent) = self.agents.get_key_value(name.or(self.default_name())?)?;
        Some(AgentEntry { name: name.clone(), agent: agent.clone() })
    }

    pub fn iter(&self) -> impl Iterator<Item = AgentEntry> + '_ {
        self.agents
            .iter()
            .map(|(name, agent)| AgentEntry { name: name.clone(), agent: agent.clone() })
    }
}
