//! The agents of a server, by name.

use std::sync::Arc;

use indexmap::IndexMap;

use super::Agent;
use agui_protocol::AgentCapabilities;

/// An agent and its name.
#[derive(Clone)]
pub struct AgentEntry {
    /// The name that the agent is served under.
    pub name: Arc<str>,
    /// The agent, which all its runs share.
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

/// The agents of a server in the order they were added, and the default agent.
#[derive(Default)]
pub struct AgentRegistry {
    agents: IndexMap<Arc<str>, Arc<dyn Agent>>,
    default: Option<Arc<str>>,
}

impl AgentRegistry {
    /// Adds an agent. An agent with the same name is replaced and keeps its position.
    pub fn insert(&mut self, name: Arc<str>, agent: Arc<dyn Agent>) {
        self.agents.insert(name, agent);
    }

    /// Sets the default agent. Without a call, the first agent is the default.
    pub fn set_default(&mut self, name: Arc<str>) {
        self.default = Some(name);
    }

    /// Returns the name of the default agent; `None` without agents.
    pub fn default_name(&self) -> Option<&str> {
        self.default.as_deref().or_else(|| self.agents.keys().next().map(|name| &**name))
    }

    /// Returns the agent with a name, or the default agent without one; `None` if it is unknown.
    pub fn get(&self, name: Option<&str>) -> Option<AgentEntry> {
        let (name, agent) = self.agents.get_key_value(name.or(self.default_name())?)?;
        Some(AgentEntry { name: name.clone(), agent: agent.clone() })
    }

    /// Returns the agents in the order they were added.
    pub fn iter(&self) -> impl Iterator<Item = AgentEntry> + '_ {
        self.agents
            .iter()
            .map(|(name, agent)| AgentEntry { name: name.clone(), agent: agent.clone() })
    }
}
