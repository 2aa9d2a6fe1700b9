//! The settings of an agent.

use std::sync::Arc;

use super::{
    options::AgentOptions, schema::CheckedSchema, subagent::Subagent, system_prompt::SystemPrompt,
};
use crate::{model::Model, window::FittedModel};
use agui_agent::RunContext;
use agui_protocol::RunAgentInput;
use agui_tools::Toolbox;

pub(super) type PromptHook = dyn Fn(&RunAgentInput, &RunContext) -> String + Send + Sync;

#[derive(Clone)]
pub(super) struct Settings {
    /// The model that is asked: `own_model`, with its refusals mended.
    pub(super) model: Arc<dyn Model>,
    pub(super) own_model: Arc<dyn Model>,
    /// `model`, if its requests are kept within a context window.
    pub(super) window: Option<Arc<FittedModel>>,
    pub(super) fallbacks: Vec<Arc<dyn Model>>,
    pub(super) description: Option<String>,
    pub(super) system_prompt: Option<SystemPrompt>,
    pub(super) prompt: Option<Arc<PromptHook>>,
    pub(super) tools: Toolbox,
    pub(super) options: AgentOptions,
    pub(super) updates_state: bool,
    /// The schema of the state, checked after the model's changes.
    pub(super) state_schema: Option<Arc<CheckedSchema>>,
    pub(super) subagents: Vec<Arc<Subagent>>,
    pub(super) response: Option<Arc<CheckedSchema>>,
}

impl Settings {
    /// Returns whether answers of the model can change the state. If so, the model is told the
    /// state.
    pub(super) fn shares_state(&self) -> bool {
        self.updates_state || !self.options.predict_state.is_empty()
    }

    /// Returns the names of all models that a request can choose, the default one first.
    pub(super) fn allowed_models(&self) -> impl Iterator<Item = &str> {
        let own = self.model.name();
        let others =
            self.options.models.iter().map(String::as_str).filter(move |name| *name != own);
        std::iter::once(own).chain(others)
    }
}
