//! The agent with a language model: it asks the model, runs the tools that the model calls, and asks again.
//!
//! A run ends when the model calls nothing more, when a person or the application has to answer something, or at the
//! limit of steps. A run uses the files in this order: `catalog`, `approval`, `drive` (the loop of steps), `answer`,
//! `plan`, `calls`.

mod answer;
mod approval;
mod calls;
mod catalog;
mod drive;
mod plan;
mod settings;
mod state;
mod subagent;

use std::{fmt, sync::Arc, time::Duration};

use self::{settings::Settings, subagent::Subagent};
use super::model::Model;
use crate::{
    agent::{Agent, EventStream, RunContext, event_stream},
    protocol::{
        AgentCapabilities, RunAgentInput, Tool as ProtocolTool,
        capabilities::{
            ExecutionCapabilities, HumanInTheLoopCapabilities, IdentityCapabilities, MultiAgentCapabilities,
            ReasoningCapabilities, StateCapabilities, SubagentInfo, ToolsCapabilities,
        },
    },
    tools::{OfferedTool, Tool, Toolbox},
};

/// Answers runs with a language model and tools.
///
/// ```
/// use agui_server::llm::{LlmAgent, Model};
/// use agui_server::tools::tool_fn;
/// use schemars::JsonSchema;
/// use serde::Deserialize;
///
/// #[derive(Deserialize, JsonSchema)]
/// struct Lookup { order: u32 }
///
/// fn clerk(model: impl Model) -> LlmAgent {
///     let find_order = tool_fn("find_order", "Finds an order by number.", |args: Lookup, _| async move {
///         format!("Order {} was sent.", args.order)
///     });
///     LlmAgent::new(model).system_prompt("You are brief.").tool(find_order).max_steps(4)
/// }
/// ```
#[derive(Clone)]
#[must_use]
pub struct LlmAgent(Arc<Settings>);

impl LlmAgent {
    /// An agent without tools and instructions, with at most 8 steps a run.
    pub fn new(model: impl Model) -> Self {
        Self(Arc::new(Settings {
            model: Arc::new(model),
            description: None,
            system_prompt: None,
            prompt: None,
            tools: Toolbox::new(),
            updates_state: false,
            subagents: Vec::new(),
            max_steps: 8,
            parallel_tools: 8,
            tool_timeout: Duration::from_secs(60),
        }))
    }

    /// Sets what the agent is for, told to people and to agents that it is a subagent of.
    pub fn description(self, text: impl Into<String>) -> Self {
        self.set(|settings| settings.description = Some(text.into()))
    }

    /// Puts instructions before every conversation.
    pub fn system_prompt(self, text: impl Into<String>) -> Self {
        self.set(|settings| settings.system_prompt = Some(text.into()))
    }

    /// Puts instructions that depend on the run after the system prompt. Empty ones are left out.
    pub fn prompt(self, prompt: impl Fn(&RunAgentInput, &RunContext) -> String + Send + Sync + 'static) -> Self {
        self.set(|settings| settings.prompt = Some(Arc::new(prompt)))
    }

    /// Adds a tool. An application's tool of the same name, in a request, goes before it.
    pub fn tool(self, tool: impl Tool) -> Self {
        self.set(|settings| settings.tools = std::mem::take(&mut settings.tools).tool(tool))
    }

    /// Adds the tools of a toolbox.
    pub fn tools(self, tools: Toolbox) -> Self {
        self.set(|settings| settings.tools = std::mem::take(&mut settings.tools).merge(tools))
    }

    /// Lets the model change the state that it shares with the application, by the tool `update_state`.
    pub fn updates_state(self, yes: bool) -> Self {
        self.set(|settings| settings.updates_state = yes)
    }

    /// Offers another agent as a tool: the model gives it a task, and gets the text of its last message. It cannot
    /// ask a person: a call that needs an approval fails the task.
    pub fn subagent(self, name: impl Into<String>, description: impl Into<String>, agent: Arc<dyn Agent>) -> Self {
        let subagent = Subagent { name: name.into(), description: description.into(), agent };
        self.set(|settings| settings.subagents.push(Arc::new(subagent)))
    }

    /// Sets how often a run asks the model; at least once.
    pub fn max_steps(self, steps: u32) -> Self {
        self.set(|settings| settings.max_steps = steps.max(1))
    }

    /// Sets how many calls of one turn run at a time; at least one.
    pub fn parallel_tools(self, calls: usize) -> Self {
        self.set(|settings| settings.parallel_tools = calls.max(1))
    }

    /// Sets how long a call may take. A longer one is stopped, and the model is told.
    pub fn tool_timeout(self, time: Duration) -> Self {
        self.set(|settings| settings.tool_timeout = time)
    }

    fn set(mut self, change: impl FnOnce(&mut Settings)) -> Self {
        change(Arc::make_mut(&mut self.0));
        self
    }
}

impl Agent for LlmAgent {
    fn run(&self, input: RunAgentInput, cx: RunContext) -> EventStream {
        event_stream(drive::drive(self.0.clone(), input, cx))
    }

    fn capabilities(&self) -> AgentCapabilities {
        let settings = &self.0;
        let tools = settings.tools.tools();
        let subagents = settings.subagents.iter().map(|subagent| {
            let (name, description) = (subagent.name.clone(), Some(subagent.description.clone()));
            SubagentInfo { name, description }
        });
        AgentCapabilities {
            identity: Some(IdentityCapabilities {
                r#type: Some("agui-server".to_owned()),
                description: settings.description.clone(),
                ..IdentityCapabilities::default()
            }),
            tools: Some(ToolsCapabilities {
                supported: Some(true),
                items: (!tools.is_empty()).then(|| tools.iter().map(as_protocol_tool).collect()),
                parallel_calls: Some(true),
                client_provided: Some(true),
            }),
            state: Some(StateCapabilities {
                snapshots: Some(settings.updates_state),
                deltas: Some(settings.updates_state),
                ..StateCapabilities::default()
            }),
            multi_agent: Some(MultiAgentCapabilities {
                supported: Some(!settings.subagents.is_empty()),
                delegation: Some(!settings.subagents.is_empty()),
                handoffs: Some(false),
                subagents: (!settings.subagents.is_empty()).then(|| subagents.collect()),
            }),
            reasoning: Some(ReasoningCapabilities { streaming: Some(true), ..ReasoningCapabilities::default() }),
            execution: Some(ExecutionCapabilities {
                max_iterations: Some(settings.max_steps.into()),
                ..ExecutionCapabilities::default()
            }),
            human_in_the_loop: Some(HumanInTheLoopCapabilities {
                supported: Some(true),
                approvals: Some(true),
                interrupts: Some(true),
                approve_with_edits: Some(true),
                ..HumanInTheLoopCapabilities::default()
            }),
            ..AgentCapabilities::default()
        }
    }
}

impl fmt::Debug for LlmAgent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let model = &self.0.model;
        f.debug_struct("LlmAgent")
            .field("provider", &model.provider())
            .field("model", &model.name())
            .field("tools", &self.0.tools)
            .finish_non_exhaustive()
    }
}

fn as_protocol_tool(tool: &OfferedTool) -> ProtocolTool {
    let spec = tool.tool.spec();
    ProtocolTool {
        name: spec.name.clone(),
        description: spec.description.clone(),
        parameters: Some(spec.parameters.clone()),
        metadata: None,
    }
}

#[cfg(test)]
mod tests;
