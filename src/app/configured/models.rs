//! Agents with a model (`kind = "llm"`), by their configuration and by what was added in Rust.

use std::{fmt, sync::Arc, time::Duration};

use indexmap::IndexMap;
use secrecy::SecretString;

use crate::{
    config::{self, ConfigError, Origin, Provider},
    llm::{Anthropic, AnthropicOptions, Connection, LlmAgent, Model, OpenAi, OpenAiOptions, Thinking},
    tools::{Tool, Toolbox},
};

/// The models and tools that were added in Rust.
#[derive(Clone, Default)]
pub(in crate::app) struct RustModels {
    pub(in crate::app) models: IndexMap<String, Arc<dyn Model>>,
    pub(in crate::app) tools: Vec<Arc<dyn Tool>>,
}

impl fmt::Debug for RustModels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tools: Vec<_> = self.tools.iter().map(|tool| &tool.spec().name).collect();
        f.debug_struct("RustModels")
            .field("models", &self.models.keys().collect::<Vec<_>>())
            .field("tools", &tools)
            .finish()
    }
}

/// Builds an agent without its subagents.
pub(super) fn build_llm(
    name: &str,
    options: &config::AgentConfig,
    rust: &RustModels,
    tools: Toolbox,
    origin: &Origin,
) -> Result<LlmAgent, ConfigError> {
    let agent = match options.provider {
        Some(Provider::Openai) => LlmAgent::new(openai(name, options, origin)?),
        Some(Provider::Anthropic) => LlmAgent::new(anthropic(name, options, origin)?),
        Some(Provider::Rust) => LlmAgent::new(rust_model(name, options, rust, origin)?),
        None => return Err(origin.error(&["agents", name], "kind = \"llm\" needs `provider`")),
    };
    let mut agent = agent.tools(tools);
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
    Ok(agent)
}

fn rust_model(
    name: &str,
    options: &config::AgentConfig,
    rust: &RustModels,
    origin: &Origin,
) -> Result<Arc<dyn Model>, ConfigError> {
    let model = options.model.as_deref().unwrap_or_default();
    rust.models.get(model).cloned().ok_or_else(|| {
        let known: Vec<_> = rust.models.keys().map(|name| format!("`{name}`")).collect();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        let message = format!("there is no Rust model `{model}`: add it with Server::model; added: {known}");
        origin.error(&["agents", name, "model"], &message)
    })
}

fn openai(name: &str, options: &config::AgentConfig, origin: &Origin) -> Result<OpenAi, ConfigError> {
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

fn anthropic(name: &str, options: &config::AgentConfig, origin: &Origin) -> Result<Anthropic, ConfigError> {
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

fn connection(name: &str, options: &config::AgentConfig, origin: &Origin) -> Result<Connection, ConfigError> {
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
