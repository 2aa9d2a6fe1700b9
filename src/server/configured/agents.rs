//! The agents of a server: configured ones, and those that were added in Rust.

use std::{num::NonZero, path::Path, sync::Arc};

use indexmap::IndexMap;

use super::{
    advice::advice,
    agent_models::AgentModels,
    llm::{system_prompt, with_options},
    models::{RustModels, read_file},
    tools::{AGENT_PREFIX, ServerTools, UPDATE_STATE},
};
use crate::server::options::{
    A2uiSwitch, AgentConfig, AgentKind, Config, ConfigError, LlmConfig, Loaded, Origin,
};
use agui_agent::{A2ui, A2uiAgent, Agent};
use agui_agents::{
    Echo, Remote,
    host::{Replay, Script},
};
use agui_base::InvalidOption;
use agui_llm::LlmAgent;
use agui_tools::Tool;

/// Agents by the name that they are served under.
type NamedAgents = IndexMap<String, Arc<dyn Agent>>;

/// The demo script, which is served unless a configuration names other agents.
const DEMO: &str = include_str!("../../../config/scripts/demo.toml");
/// The path of the demo script in the default configuration.
const DEMO_PATH: &str = "scripts/demo.toml";

/// The configuration of a server, and the models and tools that it can name.
#[derive(Default)]
pub(in crate::server) struct Configured {
    pub(in crate::server) loaded: Option<Loaded>,
    pub(in crate::server) models: RustModels,
    pub(in crate::server) tools: Vec<Arc<dyn Tool>>,
}

/// The agents and tools that a configuration describes.
#[derive(Default)]
pub(in crate::server) struct BuiltAgents {
    pub(in crate::server) agents: NamedAgents,
    pub(in crate::server) tools: ServerTools,
    /// Advice about options that providers will refuse, that have no effect, or that are risky.
    pub(in crate::server) warnings: Vec<String>,
}

impl Configured {
    /// Removes the demo agent, which is for servers that name no agents.
    pub(in crate::server) fn remove_demo(&mut self) {
        if let Some(loaded) = &mut self.loaded
            && !loaded.origin.mentions(&["agents"])
        {
            loaded.config.agents.shift_remove("demo");
        }
    }

    /// Returns the name of the default agent, if the configuration decides on it.
    pub(in crate::server) fn default_agent(&self) -> Option<&str> {
        self.loaded.as_ref()?.config.default_agent()
    }

    /// Builds all agents, the configured ones first, and the tools that they use.
    pub(in crate::server) fn build(
        &self,
        rust_agents: &NamedAgents,
    ) -> Result<BuiltAgents, ConfigError> {
        let Some(loaded) = &self.loaded else {
            return Ok(BuiltAgents { agents: rust_agents.clone(), ..BuiltAgents::default() });
        };
        let Loaded { config, origin } = loaded;
        let rust_names: Vec<&str> = rust_agents.keys().map(String::as_str).collect();
        config.check_agent_names(origin, &rust_names)?;
        let mut tools = ServerTools::build(config, origin)?;
        self.tools.iter().for_each(|tool| tools.add(tool.clone()));
        let mut builder = AgentBuilder {
            config,
            origin,
            models: AgentModels::new(loaded, &self.models)?,
            tools: &tools,
            built: rust_agents.clone(),
            begun: Vec::new(),
        };
        let (mut agents, mut errors) = (NamedAgents::new(), Vec::new());
        for name in config.agents.keys() {
            match builder.build(name) {
                Ok(agent) => drop(agents.insert(name.clone(), agent)),
                // The error of a subagent is that of each agent that lists it.
                Err(error) if errors.contains(&error) => {}
                Err(error) => errors.push(error),
            }
            builder.begun.clear();
        }
        ConfigError::join(errors.into_iter())?;
        agents.extend(rust_agents.clone());
        let warnings = advice(config, origin)?.into_iter().chain(builder.models.warnings).collect();
        Ok(BuiltAgents { agents, tools, warnings })
    }
}

/// Builds agents in the order in which they need each other.
struct AgentBuilder<'s> {
    config: &'s Config,
    origin: &'s Origin,
    models: AgentModels<'s>,
    tools: &'s ServerTools,
    /// Starts as the agents that were added in Rust.
    built: NamedAgents,
    /// Agents whose subagents are being built.
    begun: Vec<String>,
}

impl AgentBuilder<'_> {
    fn build(&mut self, name: &str) -> Result<Arc<dyn Agent>, ConfigError> {
        if let Some(agent) = self.built.get(name) {
            return Ok(agent.clone());
        }
        let origin = self.origin;
        let table = ["agents", name];
        let Some(AgentConfig { common, kind }) = self.config.agents.get(name) else {
            return Err(origin.error(&table, "there is no such agent"));
        };
        let description = common.description.clone();
        let agent: Arc<dyn Agent> = match kind {
            AgentKind::Echo => Arc::new(Echo),
            AgentKind::Script(options) => Arc::new(read_script(name, &options.script, origin)?),
            AgentKind::Llm(options) => {
                let agent = self.llm(name, options)?;
                Arc::new(description.into_iter().fold(agent, LlmAgent::description))
            }
            AgentKind::Remote(options) => Arc::new(
                Remote::new(options.clone())
                    .map_err(|error| origin.option_error(&table, &error))?,
            ),
            AgentKind::Replay(folder, options) => Arc::new(
                Replay::open(&origin.resolve(&folder.dir), options.clone())
                    .map_err(|error| origin.error(&["agents", name, "dir"], &error.to_string()))?,
            ),
        };
        let agent = match &common.a2ui {
            None => agent,
            Some(switch) => {
                let a2ui =
                    a2ui(switch, origin).map_err(|error| origin.option_error(&table, &error))?;
                Arc::new(A2uiAgent::new(agent, a2ui))
            }
        };
        self.built.insert(name.to_owned(), agent.clone());
        Ok(agent)
    }

    fn llm(&mut self, name: &str, config: &LlmConfig) -> Result<LlmAgent, ConfigError> {
        self.begun.push(name.to_owned());
        let origin = self.origin;
        let fault = |message: &str| origin.error(&["agents", name, "tools"], message);
        let (mut tools, mut subagents) = (Vec::new(), Vec::new());
        let mut updates_state = false;
        for tool in &config.options.tools {
            match tool.strip_prefix(AGENT_PREFIX) {
                Some(agent) => subagents.push(agent),
                None if tool == UPDATE_STATE => updates_state = true,
                None => tools.push(tool),
            }
        }
        let toolbox = self.tools.toolbox(&tools).map_err(|unknown| fault(&unknown))?;
        let mut agent = LlmAgent::new(self.models.model(name, config)?)
            .tools(toolbox)
            .updates_state(updates_state);
        agent = self.models.fallbacks(name, config)?.into_iter().fold(agent, LlmAgent::fallback);
        agent = with_options(agent, config, origin)
            .map_err(|error| origin.option_error(&["agents", name], &error))?;
        let prompt = system_prompt(name, &config.options, origin)?;
        agent = prompt.into_iter().fold(agent, LlmAgent::configured_prompt);
        agent = self.models.context(name, config)?.into_iter().fold(agent, LlmAgent::window);
        for subagent in subagents {
            if self.begun.iter().any(|begun| begun == subagent) {
                return Err(fault(&format!("agent `{subagent}` would give tasks to itself")));
            }
            if !self.built.contains_key(subagent) && !self.config.agents.contains_key(subagent) {
                return Err(fault(&format!("there is no agent `{subagent}`")));
            }
            let built = self.build(subagent)?;
            agent = agent.subagent(
                subagent.replace('.', "_"),
                self.description(subagent, &*built),
                built,
            );
        }
        self.begun.pop();
        Ok(agent)
    }

    /// Returns the description of a subagent for a model.
    fn description(&self, name: &str, agent: &dyn Agent) -> String {
        let configured =
            self.config.agents.get(name).and_then(|agent| agent.common.description.clone());
        let own = || agent.capabilities().identity.and_then(|identity| identity.description);
        configured.or_else(own).unwrap_or_else(|| format!("Gives a task to the agent {name}."))
    }
}

fn a2ui(switch: &A2uiSwitch, origin: &Origin) -> Result<A2ui, InvalidOption> {
    const SCHEMA_FILE: &str = "a2ui.schema_file";
    let config = match switch {
        A2uiSwitch::OnOrOff(yes) => return Ok(A2ui::enabled(*yes)),
        A2uiSwitch::On(config) => config,
    };
    let mut a2ui = A2ui::enabled(true);
    a2ui = config.catalog.iter().fold(a2ui, A2ui::catalog);
    if let Some(path) = &config.schema_file {
        let text = read_file(SCHEMA_FILE, path, origin)?;
        let read = serde_json::from_str(&text).map_err(|error| format!("not JSON: {error}"));
        let built = read.and_then(|json| a2ui.schema(&json).map_err(str::to_owned));
        a2ui = built.map_err(|problem| {
            InvalidOption::new(
                SCHEMA_FILE,
                format!("the file {}: {problem}", origin.resolve(path).display()),
            )
        })?;
    }
    Ok(config.attempts.map(NonZero::get).into_iter().fold(a2ui, A2ui::attempts))
}

fn read_script(name: &str, path: &Path, origin: &Origin) -> Result<Script, ConfigError> {
    let resolved = origin.resolve(path);
    let text = if path == Path::new(DEMO_PATH) && !origin.mentions(&["agents", name]) {
        DEMO.to_owned()
    } else {
        std::fs::read_to_string(&resolved).map_err(|error| {
            origin.error(
                &["agents", name, "script"],
                &format!("{} cannot be read: {error}", resolved.display()),
            )
        })?
    };
    Script::parse(&text)
        .map_err(|error| ConfigError::at(&resolved, &text, error.span, &error.message))
}
