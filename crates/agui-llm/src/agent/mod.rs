//! The agent with a language model: it asks the model, runs the tools that the model calls, and asks again.
//!
//! A run ends when the model calls nothing more, when a person or the application has to answer something, or at the
//! limit of steps. A run uses the files in this order: `model_chain`, `catalog`, `approval`, `steps` (the loop),
//! `answer`, `review` (or `empty_answer`), `plan`, `calls`.

mod answer;
mod approval;
mod calls;
mod capabilities;
mod catalog;
mod empty_answer;
mod foreign_texts;
mod marks;
mod model_chain;
mod options;
mod partial_json;
mod plan;
mod prediction;
mod request_options;
mod review;
mod run_scope;
mod schema;
mod settings;
mod state;
mod steps;
mod subagent;
mod surfaces;
mod suspended;
mod system_prompt;
mod task_ids;
mod tool_meter;
mod unknown_outcome;
mod unverified_messages;

use std::{fmt, num::NonZero, sync::Arc, time::Duration};

use serde_json::Value;

pub use self::unknown_outcome::UnknownOutcome;
use self::{calls::within_limit, schema::CheckedSchema, settings::Settings, subagent::Subagent};
pub use self::{options::AgentOptions, prediction::StatePrediction, system_prompt::SystemPrompt};
use super::{
    model::Model,
    options::ToolChoice,
    repair::{LadderModel, fitted},
    transport::SetupError,
    window::WindowOptions,
};
use agui_agent::{
    Agent, AgentEffects, AppRequest, EventStream, RunContext, app_request, event_stream,
};
use agui_protocol::{AgentCapabilities, JsonObject, RunAgentInput, ToolCallId};
use agui_tools::{OfferedTool, Repeat, Tool, ToolContext, Toolbox};

/// Answers runs with a language model and tools.
///
/// ```
/// use agui_llm::{LlmAgent, Model};
/// use agui_tools::tool_fn;
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
        let own_model: Arc<dyn Model> = Arc::new(model);
        Self(Arc::new(Settings {
            model: Arc::new(LadderModel::new(own_model.clone())),
            own_model,
            window: None,
            fallbacks: Vec::new(),
            description: None,
            system_prompt: None,
            prompt: None,
            tools: Toolbox::new(),
            options: AgentOptions::default(),
            updates_state: false,
            state_schema: None,
            subagents: Vec::new(),
            response: None,
        }))
    }

    /// Adds names of models that a request can choose with `forwardedProps.model`, in place of the model's own name. The
    /// name reaches the model as [`ModelRequest::model`](super::ModelRequest::model).
    pub fn models(self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.set(|settings| settings.options.models.extend(names.into_iter().map(Into::into)))
    }

    /// Adds a model that is asked if the ones before it are unavailable: they cannot be reached, do not respond in time,
    /// are overloaded or limit the rate, each after its own retries. A model that has begun its answer is not replaced,
    /// nor is one that refuses the request. A run that has changed to a fallback stays with it.
    pub fn fallback(self, model: impl Model) -> Self {
        self.set(|settings| settings.fallbacks.push(Arc::new(LadderModel::new(Arc::new(model)))))
    }

    /// Sets the agent's purpose, which people and its parent agents read.
    pub fn description(self, text: impl Into<String>) -> Self {
        self.set(|settings| settings.description = Some(text.into()))
    }

    /// Puts instructions before every conversation.
    pub fn system_prompt(self, text: impl Into<String>) -> Self {
        self.configured_prompt(SystemPrompt::from_text(text.into()))
    }

    /// Puts instructions with values of the caller before every conversation.
    #[doc(hidden)]
    pub fn configured_prompt(self, prompt: SystemPrompt) -> Self {
        self.set(|settings| settings.system_prompt = Some(prompt))
    }

    /// Puts instructions that depend on the run after the system prompt. Empty ones are left out.
    pub fn prompt(
        self,
        prompt: impl Fn(&RunAgentInput, &RunContext) -> String + Send + Sync + 'static,
    ) -> Self {
        self.set(|settings| settings.prompt = Some(Arc::new(prompt)))
    }

    /// Keeps conversations within the model's context window. Without this, the oldest messages are
    /// left out only after the provider has refused a conversation. The first call counts.
    pub fn window(self, options: WindowOptions) -> Self {
        self.set(|settings| {
            if settings.window.is_none() {
                let fitted = Arc::new(fitted(settings.own_model.clone(), options));
                settings.window = Some(fitted.clone());
                settings.model = fitted;
            }
        })
    }

    /// Adds a tool. A request's tool of the same name takes precedence.
    pub fn tool(self, tool: impl Tool) -> Self {
        self.set(|settings| settings.tools = std::mem::take(&mut settings.tools).tool(tool))
    }

    /// Adds the tools of a toolbox.
    pub fn tools(self, tools: Toolbox) -> Self {
        self.set(|settings| settings.tools = std::mem::take(&mut settings.tools).merge(tools))
    }

    /// Sets the calls that the model may or has to make. [`ToolChoice::Required`] and [`ToolChoice::Tool`] apply only to
    /// the first answer after a user's message; after that the model decides.
    pub fn tool_choice(self, choice: ToolChoice) -> Self {
        self.set(|settings| settings.options.tool_choice = choice)
    }

    /// Sets the JSON Schema of the final answer, which has to describe an object. The model gets it, and its answer is
    /// checked: the value is the run's `result`. The model can correct an answer that does not fit once; then the run
    /// fails with `response_invalid`.
    ///
    /// # Errors
    /// If the schema is invalid or too large.
    pub fn response_schema(self, schema: JsonObject) -> Result<Self, SetupError> {
        let schema = CheckedSchema::new("response_schema", schema)?;
        Ok(self.set(|settings| settings.response = Some(schema)))
    }

    /// Lets the model change the state that it shares with the application, by the tool `update_state`.
    pub fn updates_state(self, yes: bool) -> Self {
        self.set(|settings| settings.updates_state = yes)
    }

    /// Sets all options at once, in place of those that were set before.
    ///
    /// # Errors
    /// If a schema is invalid or too large, or a prediction of the state lacks a member.
    #[doc(hidden)]
    pub fn options(self, mut options: AgentOptions) -> Result<Self, SetupError> {
        let checked = |option, schema: Option<JsonObject>| {
            schema.map(|schema| CheckedSchema::new(option, schema)).transpose()
        };
        let state_schema = checked("state_schema", options.state_schema.take())?;
        if let Some(wrong) =
            options.predict_state.iter().find(|prediction| prediction.is_incomplete())
        {
            let problem = format!("`key`, `tool` and `argument` are needed: {wrong:?}");
            return Err(SetupError::Option { option: "predict_state", problem });
        }
        let response = checked("response_schema", options.response_schema.take())?;
        Ok(self.set(|settings| {
            settings.state_schema = state_schema;
            settings.response = response;
            settings.options = options;
        }))
    }

    /// Offers another agent as a tool: the model gives it a task, and gets the text of its last
    /// message. If it asks a person, the run ends with its questions, and the next run continues
    /// the task.
    pub fn subagent(
        self,
        name: impl Into<String>,
        description: impl Into<String>,
        agent: Arc<dyn Agent>,
    ) -> Self {
        let subagent = Subagent { name: name.into(), description: description.into(), agent };
        self.set(|settings| settings.subagents.push(Arc::new(subagent)))
    }

    /// Sets how often a run asks the model; at least once.
    pub fn max_steps(self, steps: u32) -> Self {
        self.set(|settings| {
            settings.options.max_steps = NonZero::new(steps).unwrap_or(NonZero::<u32>::MIN)
        })
    }

    /// Sets how many calls of one answer are run; at least one. The model is told that the others were not run.
    pub fn max_calls_per_step(self, calls: usize) -> Self {
        self.set(|settings| {
            settings.options.max_calls_per_step =
                NonZero::new(calls).unwrap_or(NonZero::<usize>::MIN)
        })
    }

    /// Sets how many calls of one step run at a time; at least one.
    pub fn parallel_tools(self, calls: usize) -> Self {
        self.set(|settings| {
            settings.options.parallel_tools = NonZero::new(calls).unwrap_or(NonZero::<usize>::MIN)
        })
    }

    /// Sets how long a call may take. A longer one is stopped, and the model is told.
    pub fn tool_timeout(self, time: Duration) -> Self {
        self.set(|settings| settings.options.tool_timeout = time)
    }

    /// Sets what happens to a call whose server was lost while it ran, when the run is continued.
    pub fn unknown_outcome(self, policy: UnknownOutcome) -> Self {
        self.set(|settings| settings.options.unknown_outcome = policy)
    }

    fn set(mut self, change: impl FnOnce(&mut Settings)) -> Self {
        change(Arc::make_mut(&mut self.0));
        self
    }
}

impl Agent for LlmAgent {
    fn run(&self, input: RunAgentInput, cx: RunContext) -> EventStream {
        event_stream(steps::run(self.0.clone(), input, cx))
    }

    fn respond_to_app(&self, input: RunAgentInput, cx: RunContext) -> EventStream {
        event_stream(app_request::respond(cx.clone(), respond_to_app(self.0.clone(), input, cx)))
    }

    fn capabilities(&self) -> AgentCapabilities {
        capabilities::capabilities(&self.0)
    }

    /// A run continues after its last complete answer or tool result.
    fn can_continue(&self) -> bool {
        true
    }

    /// None if all tools and subagents are safe to repeat.
    fn effects(&self) -> AgentEffects {
        let is_safe = |tool: &OfferedTool| tool.tool.repeat(&JsonObject::new()) == Repeat::Safe;
        let is_repeatable = self.0.tools.tools().iter().all(is_safe)
            && self
                .0
                .subagents
                .iter()
                .all(|subagent| subagent.agent.effects() == AgentEffects::None);
        if is_repeatable { AgentEffects::None } else { AgentEffects::Announced }
    }
}

/// Returns the response to a request of the page of an MCP server, or the reason for the refusal.
async fn respond_to_app(
    settings: Arc<Settings>,
    input: RunAgentInput,
    cx: RunContext,
) -> Result<Value, String> {
    let request = AppRequest::from_input(&input).ok_or("it is malformed")?;
    let of_run = settings.tools.for_run(&cx).await;
    let tools = of_run.as_ref().unwrap_or(&settings.tools);
    tools.ready().await;
    let cx = ToolContext::new(cx, input.state_or_empty(), ToolCallId::random(), &*request.method);
    let response =
        within_limit(settings.options.tool_timeout, &cx, tools.respond_to_app(&request, &cx)).await;
    response.ok_or("it took too long")?.map_err(|error| format!("{error:?}"))
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

#[cfg(test)]
mod linear_scans {
    mod tests;
}
#[cfg(test)]
mod tests;
