//! The system prompts of the configured agents.

use super::models::read_file;
use crate::{
    llm::SystemPrompt,
    server::options::{ConfigError, LlmOptions, Origin},
};

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
