//! The agent with a model behind it: asks the model, does what it calls, and asks again.
//!
//! A run goes on until the model has nothing more to call, a person or the application has to answer something, or
//! the agent has taken as many steps as it may. The pieces, in the order in which a run meets them: [`offer`]
//! says what the model can call, [`approval`] reads what people answered, [`drive`] goes through the
//! steps, [`answer`] turns what the model says into events, [`calls`] does what it called, with [`state`]
//! and [`subagent`] for what is no ordinary tool.

mod answer;
mod approval;
mod calls;
mod drive;
mod offer;
mod state;
mod subagent;

use std::{sync::Arc, time::Duration};

use self::subagent::Subagent;
use super::model::Model;
use crate::{
    agent::{Agent, EventStream, RunContext, event_stream},
    protocol::{
        AgentCapabilities, RunAgentInput,
        capabilities::{
            Execution, HumanInTheLoop, Identity, MultiAgent, Reasoning, StateCapabilities, SubagentInfo, Tools,
        },
    },
    tools::Toolbox,
};

/// Answers runs with a language model and tools.
///
/// ```
/// use agui_server::llm::{LlmAgent, Model};
/// use agui_server::tools::Toolbox;
///
/// fn assistant(model: impl Model, tools: Toolbox) -> LlmAgent {
///     LlmAgent::new(model).system_prompt("You are brief.").tools(tools).max_steps(4)
/// }
/// ```
#[derive(Clone)]
pub struct LlmAgent(Arc<Core>);

#[derive(Clone)]
struct Core {
    model: Arc<dyn Model>,
    description: Option<String>,
    system_prompt: Option<String>,
    tools: Arc<Toolbox>,
    updates_state: bool,
    subagents: Vec<Subagent>,
    max_steps: u32,
    parallel_tools: usize,
    tool_timeout: Duration,
}

impl LlmAgent {
    /// An agent without tools, which takes at most 8 steps.
    pub fn new(model: impl Model) -> Self {
        Self(Arc::new(Core {
            model: Arc::new(model),
            description: None,
            system_prompt: None,
            tools: Arc::default(),
            updates_state: false,
            subagents: Vec::new(),
            max_steps: 8,
            parallel_tools: 8,
            tool_timeout: Duration::from_secs(60),
        }))
    }

    fn set(mut self, change: impl FnOnce(&mut Core)) -> Self {
        change(Arc::make_mut(&mut self.0));
        self
    }

    /// Says what the agent is for, to people and to agents that it is a subagent of.
    pub fn description(self, text: impl Into<String>) -> Self {
        self.set(|core| core.description = Some(text.into()))
    }

    /// Puts instructions before every conversation.
    pub fn system_prompt(self, text: impl Into<String>) -> Self {
        self.set(|core| core.system_prompt = Some(text.into()))
    }

    /// Gives the model the server's tools. An application's tool of the same name, in a request, goes before one
    /// of these.
    pub fn tools(self, tools: Toolbox) -> Self {
        self.set(|core| core.tools = Arc::new(tools))
    }

    /// Lets the model change the state that it shares with the application, with the tool `update_state`, and
    /// tells it the state.
    pub fn updates_state(self, yes: bool) -> Self {
        self.set(|core| core.updates_state = yes)
    }

    /// Offers another agent as a tool: the model gives it a task, and gets its last words. It cannot ask people:
    /// a call of its that needs an approval fails the task.
    pub fn subagent(self, name: impl Into<String>, description: impl Into<String>, agent: Arc<dyn Agent>) -> Self {
        self.set(|core| core.subagents.push(Subagent::new(name.into(), description.into(), agent)))
    }

    /// Sets how often the model is asked in a run; at least once.
    pub fn max_steps(self, steps: u32) -> Self {
        self.set(|core| core.max_steps = steps.max(1))
    }

    /// Sets how many calls of one turn are carried out at a time; at least one.
    pub fn parallel_tools(self, calls: usize) -> Self {
        self.set(|core| core.parallel_tools = calls.max(1))
    }

    /// Sets how long a tool may take. A call that takes longer fails, and the model is told.
    pub fn tool_timeout(self, time: Duration) -> Self {
        self.set(|core| core.tool_timeout = time)
    }
}

impl Agent for LlmAgent {
    fn run(&self, input: RunAgentInput, cx: RunContext) -> EventStream {
        event_stream(drive::drive(self.0.clone(), input, cx))
    }

    fn capabilities(&self) -> AgentCapabilities {
        let core = &self.0;
        let tools = core.tools.tools();
        let subagents = core.subagents.iter().map(|subagent| {
            let (name, description) = (subagent.name.clone(), Some(subagent.description.clone()));
            SubagentInfo { name, description }
        });
        AgentCapabilities {
            identity: Some(Identity {
                r#type: Some("agui-server".to_owned()),
                description: core.description.clone(),
                ..Identity::default()
            }),
            tools: Some(Tools {
                supported: Some(true),
                items: (!tools.is_empty()).then(|| tools.iter().map(offer::as_protocol_tool).collect()),
                parallel_calls: Some(true),
                client_provided: Some(true),
            }),
            state: Some(StateCapabilities {
                snapshots: Some(core.updates_state),
                deltas: Some(core.updates_state),
                ..StateCapabilities::default()
            }),
            multi_agent: Some(MultiAgent {
                supported: Some(!core.subagents.is_empty()),
                delegation: Some(!core.subagents.is_empty()),
                handoffs: Some(false),
                subagents: (!core.subagents.is_empty()).then(|| subagents.collect()),
            }),
            reasoning: Some(Reasoning { streaming: Some(true), ..Reasoning::default() }),
            execution: Some(Execution { max_iterations: Some(core.max_steps.into()), ..Execution::default() }),
            human_in_the_loop: Some(HumanInTheLoop {
                supported: Some(true),
                approvals: Some(true),
                interrupts: Some(true),
                approve_with_edits: Some(true),
                ..HumanInTheLoop::default()
            }),
            ..AgentCapabilities::default()
        }
    }
}

#[cfg(test)]
mod tests;
