//! Agents with a model (`kind = "llm"`), by their configuration.

use super::models::{read_file, setup_fault};
use crate::server::options::{ConfigError, LlmConfig, LlmOptions, Origin};
use agui_base::InvalidOption;
use agui_llm::{LlmAgent, host::SystemPrompt};

/// Gives an agent the options that name no tools and no other agents, without the system prompt.
pub(super) fn with_options(
    agent: LlmAgent,
    LlmConfig { options, agent: agent_options, .. }: &LlmConfig,
    origin: &Origin,
) -> Result<LlmAgent, InvalidOption> {
    let mut agent = agent.options(agent_options.clone()).map_err(setup_fault)?;
    if let Some(path) = &options.response_schema_file {
        const OPTION: &str = "response_schema_file";
        let text = read_file(OPTION, path, origin)?;
        let schema =
            serde_json::from_str(&text).map_err(|error| format!("not a JSON object: {error}"));
        let built = schema.and_then(|schema| {
            agent.response_schema(schema).map_err(|error| setup_fault(error).problem)
        });
        agent = built.map_err(|problem| {
            InvalidOption::new(
                OPTION,
                format!("the file {}: {problem}", origin.resolve(path).display()),
            )
        })?;
    }
    Ok(agent)
}

/// Returns the system prompt of an agent, which is in its table or in a file.
///
/// # Errors
/// The file cannot be read or is empty, or a placeholder in it is written wrongly.
pub(super) fn system_prompt(
    agent: &str,
    options: &LlmOptions,
    origin: &Origin,
) -> Result<Option<SystemPrompt>, ConfigError> {
    let Some(path) = &options.system_prompt_file else { return Ok(options.system_prompt.clone()) };
    let text = read_file("system_prompt_file", path, origin)
        .map_err(|error| origin.option_error(&["agents", agent], &error))?;
    let before = text.len() - text.trim_start().len();
    let prompt = SystemPrompt::parse(text.trim()).map_err(|error| {
        let span = before + error.span.start..before + error.span.end;
        ConfigError::at(&origin.resolve(path), &text, Some(span), &error.to_string())
    });
    prompt.map(Some)
}
