//! Agents with a model (`kind = "llm"`), by their configuration.

use std::time::Duration;

use super::models::{read_file, setup_fault};
use crate::{
    base::InvalidOption,
    llm::LlmAgent,
    server::options::{LlmOptions, Origin},
};

/// Gives an agent the options that name no tools and no other agents, without the system prompt.
pub(super) fn with_options(
    mut agent: LlmAgent,
    options: &LlmOptions,
    origin: &Origin,
) -> Result<LlmAgent, InvalidOption> {
    agent = agent.models(&options.models);
    if let Some(choice) = &options.tool_choice {
        agent = agent.tool_choice(choice.clone());
    }
    if let Some(schema) = &options.response_schema {
        agent = agent.response_schema(schema.clone()).map_err(setup_fault)?;
    }
    if let Some(path) = &options.response_schema_file {
        const OPTION: &str = "response_schema_file";
        let text = read_file(OPTION, path, origin)?;
        let schema = serde_json::from_str(&text).map_err(|error| format!("not a JSON object: {error}"));
        let built = schema.and_then(|schema| agent.response_schema(schema).map_err(|error| setup_fault(error).problem));
        agent = built.map_err(|problem| {
            InvalidOption::new(OPTION, format!("the file {}: {problem}", origin.resolve(path).display()))
        })?;
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
    Ok(agent.unknown_outcome(options.unknown_outcome))
}
