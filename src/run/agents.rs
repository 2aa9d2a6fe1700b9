//! The agents of a server, by name.

use std::sync::Arc;

use indexmap::IndexMap;

use crate::{
    agent::{Agent, RunContext},
    protocol::{AgentCapabilities, Event, RunAgentInput},
};

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

    /// Returns whether the agent renders A2UI surfaces in each run.
    pub(crate) fn renders_surfaces(&self) -> bool {
        self.agent.a2ui().is_some_and(|a2ui| a2ui.is_enabled)
    }

    /// The agent that responds to the requests of MCP apps.
    pub(super) fn for_app(self) -> Self {
        let agent = self.agent;
        let respond = move |input: RunAgentInput, cx: RunContext| agent.respond_to_app(input, cx);
        Self { agent: Arc::new(respond), ..self }
    }

    pub(super) fn with_fixed_events(self, events: Vec<Event>) -> Self {
        let agent = move |_: RunAgentInput, _: RunContext| crate::agent::events(events.clone());
        Self { agent: Arc::new(agent), ..self }
    }
}

#[derive(Default)]
pub(crate) struct AgentRegistry {
    agents: IndexMap<Arc<str>, Arc<dyn Agent>>,
    default: Option<Arc<str>>,
}

impl AgentRegistry {
    pub(super) fn insert(&mut self, name: Arc<str>, agent: Arc<dyn Agent>) {
        self.agents.insert(name, agent);
    }

    pub(crate) fn set_default(&mut self, name: Arc<str>) {
        self.default = Some(name);
    }

    pub(super) fn default_name(&self) -> Option<&str> {
        self.default.as_deref().or_else(|| self.agents.keys().next().map(|name| &**name))
    }

    pub(super) fn get(&self, name: Option<&str>) -> Option<AgentEntry> {
        let (name, agent) = self.agents.get_key_value(name.or(self.default_name())?)?;
        Some(AgentEntry { name: name.clone(), agent: agent.clone() })
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = AgentEntry> + '_ {
        self.agents.iter().map(|(name, agent)| AgentEntry { name: name.clone(), agent: agent.clone() })
    }
}
