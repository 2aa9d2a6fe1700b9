//! The settings of an agent.

use std::{sync::Arc, time::Duration};

use super::{
    prediction::StatePrediction, schema::CheckedSchema, subagent::Subagent,
    system_prompt::SystemPrompt, unknown_outcome::UnknownOutcome,
};
use crate::{model::Model, options::ToolChoice, window::FittedModel};
use agui_agent::RunContext;
use agui_protocol::RunAgentInput;
use agui_tools::Toolbox;

pub(super) type PromptHook = dyn Fn(&RunAgentInput, &RunContext) -> String + Send + Sync;

#[derive(Clone)]
pub(super) struct Settings {
    pub(super) model: Arc<dyn Model>,
    /// `model`, if its requests are kept within a context window.
    pub(super) window: Option<Arc<FittedModel>>,
    /// The names of models that a request can choose in place of the model's own name.
    pub(super) models: Vec<String>,
    pub(super) fallbacks: Vec<Arc<dyn Model>>,
    pub(super) description: Option<String>,
    pub(super) system_prompt: Option<SystemPrompt>,
    pub(super) prompt: Option<Arc<PromptHook>>,
    pub(super) tools: Toolbox,
    pub(super) tool_choice: ToolChoice,
    pub(super) updates_state: bool,
    /// The schema of the state, checked after the model's changes.
    pub(super) state_schema: Option<Arc<CheckedSchema>>,
    pub(super) predictions: Vec<StatePrediction>,
    pub(super) subagents: Vec<Arc<Subagent>>,
    pub(super) response: Option<Arc<CheckedSchema>>,
    pub(super) max_steps: u32,
    pub(super) max_calls_per_turn: usize,
    pub(super) parallel_tools: usize,
    pub(super) tool_timeout: Duration,
    pub(super) unknown_outcome: UnknownOutcome,
}

impl Settings {
    /// Returns whether answers of the model can change the state. If so, the model is told the
    /// state.
    pub(super) fn shares_state(&self) -> bool {
        self.updates_state || !self.predictions.is_empty()
    }

    /// Returns the names of all models that a request can choose, the default one first.
    pub(super) fn allowed_models(&self) -> impl Iterator<Item = &str> {
        let own = self.model.name();
        let others = self.models.iter().map(String::as_str).filter(move |name| *name != own);
        std::iter::once(own).chain(others)
    }
}
