//! From a configuration to agents. An agent may give tasks to others, which are built before it.

use std::{collections::HashMap, path::Path, sync::Arc, time::Duration};

use secrecy::SecretString;

use super::remote::build_remote;
use crate::{
    agent::Agent,
    agents::{Echo, Script},
    config::{self, AgentKind, Config, ConfigError, Origin, Provider},
    llm::{Anthropic, AnthropicOptions, Connection, LlmAgent, OpenAi, OpenAiOptions, Thinking},
    tools::ToolRegistry,
};

/// The demo script, which is served unless a configuration names other agents.
const DEMO: &str = include_str!("../../config/scripts/demo.toml");
/// What the default configuration calls it.
const DEMO_PATH: &str = "scripts/demo.toml";
/// What stands before an agent's name in a list of tools.
const AGENT: &str = "agent:";
/// The tool by which a model changes the shared state.
const UPDATE_STATE: &str = "update_state";

/// Agents, and the names they are served under.
pub(super) type NamedAgents = Vec<(String, Arc<dyn Agent>)>;

/// Builds the agents of a configuration, in its order.
pub(super) fn build_agents(config: &Config, tools: &ToolRegistry, origin: &Origin) -> Result<NamedAgents, ConfigError> {
    let mut building = Building { config, tools, origin, built: HashMap::new(), begun: Vec::new() };
    let all = config.agents.keys().map(|name| Ok((name.clone(), building.build(name)?)));
    all.collect()
}

struct Building<'c> {
    config: &'c Config,
    tools: &'c ToolRegistry,
    origin: &'c Origin,
    built: HashMap<String, Arc<dyn Agent>>,
    /// Those that wait for others to be built.
    begun: Vec<String>,
}

impl Building<'_> {
    fn build(&mut self, name: &str) -> Result<Arc<dyn Agent>, ConfigError> {
        if let Some(agent) = self.built.get(name) {
            return Ok(agent.clone());
        }
        let agent: Arc<dyn Agent> = match self.config.agents.get(name) {
            Some(agent) => match (agent.kind, &agent.script) {
                (AgentKind::Echo, _) => Arc::new(Echo),
                (AgentKind::Script, Some(path)) => Arc::new(read_script(name, path, self.origin)?),
                (AgentKind::Script, None) => return Err(self.fault(name, "kind = \"script\" needs `script`, a file")),
                (AgentKind::Remote, _) => build_remote(name, agent, self.origin)?,
                (AgentKind::Llm, _) => Arc::new(self.llm(name, agent)?),
            },
            None => return Err(self.fault(name, "there is no such agent")),
        };
        self.built.insert(name.to_owned(), agent.clone());
        Ok(agent)
    }

    fn fault(&self, name: &str, message: &str) -> ConfigError {
        self.origin.error(&["agents", name], message)
    }

    fn llm(&mut self, name: &str, options: &config::Agent) -> Result<LlmAgent, ConfigError> {
        self.begun.push(name.to_owned());
        let mut agent = match options.provider {
            Some(Provider::Openai) => LlmAgent::new(openai(name, options, self.origin)?),
            Some(Provider::Anthropic) => LlmAgent::new(anthropic(name, options, self.origin)?),
            None => return Err(self.fault(name, "kind = \"llm\" needs `provider`")),
        };
        let mut tools = Vec::new();
        for tool in options.tools.iter().flatten() {
            if let Some(other) = tool.strip_prefix(AGENT) {
                let place = ["agents", name, "tools"];
                let Some(settings) = self.config.agents.get(other) else {
                    return Err(self.origin.error(&place, &format!("there is no agent `{other}`")));
                };
                if self.begun.iter().any(|begun| begun == other) {
                    return Err(self.origin.error(&place, &format!("agent `{other}` would give tasks to itself")));
                }
                let description = settings.description.clone();
                let description = description.unwrap_or_else(|| format!("Gives a task to the agent {other}."));
                agent = agent.subagent(other.replace('.', "_"), description, self.build(other)?);
            } else if tool == UPDATE_STATE {
                agent = agent.updates_state(true);
            } else {
                tools.push(tool.clone());
            }
        }
        let toolbox = self
            .tools
            .toolbox(&tools)
            .map_err(|unknown| self.origin.error(&["agents", name, "tools"], &unknown.to_string()))?;
        agent = agent.tools(toolbox);
        if let Some(text) = &options.description {
            agent = agent.description(text);
        }
        if let Some(text) = &options.system_prompt {
            agent = agent.system_prompt(text);
        }
        if let Some(steps) = options.max_steps {
            agent = agent.max_steps(steps);
        }
        if let Some(calls) = options.parallel_tools {
            agent = agent.parallel_tools(calls);
        }
        if let Some(seconds) = options.tool_timeout_secs {
            agent = agent.tool_timeout(Duration::from_secs(seconds));
        }
        self.begun.pop();
        Ok(agent)
    }
}

fn read_script(name: &str, path: &Path, origin: &Origin) -> Result<Script, ConfigError> {
    let resolved = origin.resolve(path);
    let text = if path == Path::new(DEMO_PATH) && !origin.mentions(&["agents", name]) {
        DEMO.to_owned()
    } else {
        std::fs::read_to_string(&resolved).map_err(|error| {
            origin.error(&["agents", name, "script"], &format!("{} cannot be read: {error}", resolved.display()))
        })?
    };
    Script::parse(&text).map_err(|error| ConfigError::at(&resolved, &text, error.span(), error.message()))
}

fn openai(name: &str, options: &config::Agent, origin: &Origin) -> Result<OpenAi, ConfigError> {
    let effort = match (options.thinking, &options.reasoning_effort) {
        // A model that is to think by default has to be told how hard.
        (Some(true), None) => Some("medium".to_owned()),
        (_, effort) => effort.clone(),
    };
    let model = OpenAi::new(OpenAiOptions {
        model: options.model.clone().unwrap_or_default(),
        connection: connection(name, options, origin)?,
        max_tokens: options.max_tokens,
        temperature: options.temperature,
        reasoning_effort: effort,
        ..OpenAiOptions::default()
    });
    model.map_err(|error| origin.error(&["agents", name], &error.to_string()))
}

fn anthropic(name: &str, options: &config::Agent, origin: &Origin) -> Result<Anthropic, ConfigError> {
    let defaults = AnthropicOptions::default();
    let model = Anthropic::new(AnthropicOptions {
        model: options.model.clone().unwrap_or_default(),
        connection: connection(name, options, origin)?,
        max_tokens: options.max_tokens.unwrap_or(defaults.max_tokens),
        temperature: options.temperature,
        think: options.thinking.unwrap_or(defaults.think),
        thinking: options.thinking_budget.map_or(defaults.thinking, Thinking::Budget),
        cache: defaults.cache,
    });
    model.map_err(|error| origin.error(&["agents", name], &error.to_string()))
}

fn connection(name: &str, options: &config::Agent, origin: &Origin) -> Result<Connection, ConfigError> {
    let defaults = Connection::default();
    let secret = |option: &str, variable: &str| match std::env::var(variable) {
        Ok(secret) if !secret.trim().is_empty() => Ok(SecretString::from(secret.trim().to_owned())),
        _ => {
            let message = format!("the environment variable {variable} is not set");
            Err(origin.error(&["agents", name, option], &message))
        }
    };
    let headers = options.headers_env.iter().flatten();
    let headers = headers.map(|(header, variable)| Ok((header.clone(), secret("headers_env", variable)?)));
    Ok(Connection {
        base_url: options.base_url.clone(),
        api_key: options.api_key_env.as_deref().map(|variable| secret("api_key_env", variable)).transpose()?,
        headers: headers.collect::<Result<_, ConfigError>>()?,
        connect_timeout: options.connect_timeout_secs.map_or(defaults.connect_timeout, Duration::from_secs),
        idle_timeout: options.idle_timeout_secs.map_or(defaults.idle_timeout, Duration::from_secs),
        max_retries: options.max_retries.unwrap_or(defaults.max_retries),
        ..defaults
    })
}
