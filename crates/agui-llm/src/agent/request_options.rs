//! What a request chooses for the models of its run: `forwardedProps.modelOptions`.

use std::sync::Arc;

use serde::Deserialize;

use super::{schema::CheckedSchema, settings::Settings};
use crate::options::RequestSampling;
use agui_agent::AgentError;
use agui_base::{RunErrorCode, text::short_line};
use agui_protocol::{JsonObject, RunAgentInput};

/// The member of `forwardedProps` with the options.
pub(super) const MODEL_OPTIONS: &str = "modelOptions";

/// The options of a request.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct ChosenOptions {
    #[serde(flatten)]
    pub(super) sampling: RequestSampling,
    /// The JSON Schema of the final answer, for an agent without a schema of its own.
    response_schema: Option<JsonObject>,
}

impl ChosenOptions {
    /// Reads the options. Wrong ones are ignored: an application may use the name for its own data.
    pub(super) fn from_input(input: &RunAgentInput) -> Self {
        let Some(options) = input.forwarded_prop(MODEL_OPTIONS) else { return Self::default() };
        Self::deserialize(options).unwrap_or_else(|error| {
            let problem = short_line(&error.to_string());
            tracing::warn!(problem, "ignored forwardedProps.modelOptions");
            Self::default()
        })
    }

    /// Gives the run the schema of its answer. The agent's own schema takes precedence.
    ///
    /// # Errors
    /// If the schema is invalid or too large.
    pub(super) fn apply_schema(&mut self, settings: &mut Arc<Settings>) -> Result<(), AgentError> {
        let Some(schema) = self.response_schema.take().filter(|_| settings.response.is_none())
        else {
            return Ok(());
        };
        let checked = CheckedSchema::new("response_schema", schema).map_err(|error| {
            AgentError::new(RunErrorCode::InvalidResponseSchema, short_line(&error.to_string()))
        })?;
        Arc::make_mut(settings).response = Some(checked);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(options: Value) -> ChosenOptions {
        let mut input = RunAgentInput::new("t", "r", Vec::new());
        input.forwarded_props = Some(json!({ MODEL_OPTIONS: options }));
        ChosenOptions::from_input(&input)
    }

    #[test]
    fn wrong_options_are_ignored_and_others_are_read() {
        let read_sampling = |options: Value| read(options).sampling;
        let sampling = read_sampling(json!({ "maxTokens": 5, "stop": ["A"], "other": true }));
        assert_eq!((sampling.max_tokens, sampling.stop), (Some(5), vec!["A".to_owned()]));
        for wrong in [json!(null), json!(1), json!({ "maxTokens": -1 }), json!({ "stop": "A" })] {
            assert_eq!(read_sampling(wrong), RequestSampling::default());
        }
        let options = read(json!({ "temperature": 1, "responseSchema": { "type": "object" } }));
        assert_eq!(options.sampling.temperature, Some(1.0));
        assert!(options.response_schema.is_some());
    }
}
