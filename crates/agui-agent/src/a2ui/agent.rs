//! [`A2uiAgent`]: an agent with settings for A2UI.

use std::sync::Arc;

use super::A2ui;
use crate::{Agent, EventStream, RunContext, delegate_agent};
use agui_protocol::RunAgentInput;

/// An agent of any kind whose runs render A2UI surfaces, or none.
///
/// ```
/// use agui_agent::{A2ui, A2uiAgent, RunContext, emit::TextMessage, events};
/// use agui_protocol::RunAgentInput;
///
/// let greet = |_: RunAgentInput, _: RunContext| events(TextMessage::whole("Hello!"));
/// let agent = A2uiAgent::new(greet, A2ui::enabled(true));
/// ```
pub struct A2uiAgent {
    agent: Arc<dyn Agent>,
    options: A2ui,
}

impl A2uiAgent {
    /// Gives an agent the settings.
    pub fn new(agent: impl Agent, options: A2ui) -> Self {
        Self { agent: Arc::new(agent), options }
    }
}

impl std::fmt::Debug for A2uiAgent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("A2uiAgent").field("options", &self.options).finish_non_exhaustive()
    }
}

impl Agent for A2uiAgent {
    fn run(&self, input: RunAgentInput, cx: RunContext) -> EventStream {
        self.agent.run(input, cx)
    }

    delegate_agent!(agent);

    fn a2ui(&self) -> Option<&A2ui> {
        Some(&self.options)
    }
}
