//! Agents with a model (`kind = "llm"`), by their configuration.

use std::{path::Path, time::Duration};

use super::{agent_models::AgentModels, files::read_file};
use crate::{
    config::{self, ConfigError, Origin},
    llm::{LlmAgent, SetupError},
    tools::Toolbox,
};

/// Builds an agent without its subagents.
pub(super) fn build_llm(
    name: &str,
    options: &config::AgentConfig,
    models: &mut AgentModels<'_>,
    tools: Toolbox,
    origin: &Origin,
) -> Result<LlmAgent, ConfigError> {
    let mut agent = LlmAgent::new(models.model(name)?).tools(tools).models(options.models.iter().flatten());
    for model in models.fallbacks(name)? {
        agent = agent.fallback(model);
    }
    if let Some(text) = &options.description {
        agent = agent.description(text);
    }
    if let Some(text) = &options.system_prompt {
        agent = agent.system_prompt(text);
    }
    if let Some(path) = &options.system_prompt_file {
        agent = agent.system_prompt(read_file(name, "system_prompt_file", path, origin)?);
    }
    if let Some(choice) = &options.tool_choice {
        agent = agent.tool_choice(choice.clone());
    }
    if let Some(schema) = &options.response_schema {
        agent = agent.response_schema(schema.clone()).map_err(|error| {
            let problem = problem_of(error);
            origin.error(&["agents", name, "response_schema"], &problem)
        })?;
    }
    if let Some(path) = &options.response_schema_file {
        agent = with_schema_file(agent, name, path, origin)?;
    }
    if let Some(steps) = options.max_steps {
        agent = agent.max_steps(steps);
    }
    if let Some(calls) = options.max_calls_per_turn {
        agent = agent.max_calls_per_turn(calls);
    }
    if let Some(calls) = options.parallel_tools {
        agent = agent.parallel_tools(calls);
    }
    if let Some(seconds) = options.tool_timeout_secs {
        agent = agent.tool_timeout(Duration::from_secs(seconds));
    }
    Ok(agent)
}

fn with_schema_file(agent: LlmAgent, name: &str, path: &Path, origin: &Origin) -> Result<LlmAgent, ConfigError> {
    let text = read_file(name, "response_schema_file", path, origin)?;
    let schema = serde_json::from_str(&text).map_err(|error| format!("not a JSON object: {error}"));
    let agent = schema.and_then(|schema| agent.response_schema(schema).map_err(problem_of));
    agent.map_err(|problem| {
        let problem = format!("the file {}: {problem}", origin.resolve(path).display());
        origin.error(&["agents", name, "response_schema_file"], &problem)
    })
}

/// Returns the problem without the name of the option.
fn problem_of(error: SetupError) -> String {
    match error {
        SetupError::Option { problem, .. } => problem,
        error => error.to_string(),
    }
}
