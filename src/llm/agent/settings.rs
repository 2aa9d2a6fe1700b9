//! The settings of an agent.

use std::{sync::Arc, time::Duration};

use super::subagent::Subagent;
use crate::{agent::RunContext, llm::model::Model, protocol::RunAgentInput, tools::Toolbox};

pub(super) type PromptHook = dyn Fn(&RunAgentInput, &RunContext) -> String + Send + Sync;

#[derive(Clone)]
pub(super) struct Settings {
    pub(super) model: Arc<dyn Model>,
    pub(super) description: Option<String>,
    pub(super) system_prompt: Option<String>,
    pub(super) prompt: Option<Arc<PromptHook>>,
    pub(super) tools: Toolbox,
    pub(super) updates_state: bool,
    pub(super) subagents: Vec<Arc<Subagent>>,
    pub(super) max_steps: u32,
    pub(super) parallel_tools: usize,
    pub(super) tool_timeout: Duration,
}
