//! The parts of a server that a configuration describes.
//!
//! [`Configured`] keeps the configuration; its agents and tools are built when the server starts, so that it can name
//! agents, tools and models that are added in Rust after it was read.

pub(super) mod agent_models;
mod agents;
mod callers;
mod jwt;
mod llm;
mod models;
pub(super) mod options;
mod sandbox_workspaces;
pub(super) mod store;
mod tools;

pub(super) use self::{agents::BuiltAgents, tools::ServerTools};
use self::{
    agents::{NamedAgents, build_agents},
    models::RustModels,
};
use crate::server::options::{ConfigError, Loaded};

/// The configuration of a server, and what it can name beside agents.
#[derive(Debug, Clone, Default)]
pub(super) struct Configured {
    pub(super) loaded: Option<Loaded>,
    pub(super) models: RustModels,
}

impl Configured {
    /// Removes the demo agent, which is for servers that name no agents.
    pub(super) fn remove_demo(&mut self) {
        if let Some(loaded) = &mut self.loaded
            && !loaded.origin.mentions(&["agents"])
        {
            loaded.config.agents.shift_remove("demo");
        }
    }

    /// Builds all agents, the configured ones first, and the tools that they use.
    pub(super) fn build(&self, rust_agents: &NamedAgents) -> Result<BuiltAgents, ConfigError> {
        build_agents(self.loaded.as_ref(), rust_agents, &self.models)
    }

    /// Returns the names of the configured agents.
    pub(super) fn agent_names(&self) -> impl Iterator<Item = &str> {
        self.loaded.iter().flat_map(|loaded| loaded.config.agents.keys()).map(String::as_str)
    }

    /// Returns the name of the default agent, if the configuration decides on it.
    pub(super) fn default_agent(&self) -> Option<&str> {
        self.loaded.as_ref()?.config.default_agent()
    }
}
