//! Runs the calls that people decided about, then asks the model and runs its calls, step by step.

use std::{ops::ControlFlow, sync::Arc};

use async_stream::try_stream;
use futures::{Stream, StreamExt as _};
use serde_json::Value;

use super::{
    answer::{AnswerBuilder, CallIds, CompleteAnswer},
    approval,
    calls::RunningCalls,
    catalog::{ToolCatalog, ToolOwner},
    empty_answer::EmptyAnswer,
    foreign_texts::ForeignTexts,
    marks::{self, EarlierSteps},
    model_chain::ModelChain,
    plan::StepPlan,
    prediction::StatePredictor,
    request_options::ChosenOptions,
    review::{NextStep, Review},
    run_scope::RunScope,
    settings::Settings,
    state,
    tool_meter::CallOutcome,
    unverified_messages::drop_unverified,
};
use crate::{
    history,
    model::{ModelRequest, ModelStep},
    options::{RequestSampling, ToolChoice},
};
use agui_agent::{AgentError, RunContext, emit, emit::Step, host::RunSurfaces, surfaces::a2ui};
use agui_base::RunErrorCode;
use agui_protocol::{ContentPart, Context, Event, Message, RunAgentInput};
use agui_tools::host::ToolSession;

/// Answers a run.
pub(super) fn run(
    settings: Arc<Settings>,
    mut input: RunAgentInput,
    cx: RunContext,
) -> impl Stream<Item = Result<Event, AgentError>> + Send {
    try_stream! {
        let (settings, sampling) = settings_of_run(settings, &input, &cx).await?;
        let mut models = ModelChain::new(&settings, &input)?;
        let catalog = ToolCatalog::new(&settings, &input, cx.surfaces.as_ref());
        let instructions = instructions(&settings, &input, &cx)?;
        let mut messages = std::mem::take(&mut input.messages).into_vec();
        drop_unverified(&mut messages, &catalog, &cx);
        let mut earlier_steps = EarlierSteps::from_marks(&cx);
        if let Some(end) = earlier_steps.end.take() {
            yield end;
            return;
        }
        let prior = approval::prior_approvals(&messages, &input.resume, &catalog, &cx).await;
        // If any approval is still open, no call runs, not even an approved one. A continued run
        // plans its own approvals below.
        if !prior.open.is_empty() && earlier_steps.count == 0 {
            yield emit::interrupt(&cx, prior.open);
            return;
        }
        let session = ToolSession::new(cx.clone(), input.state_or_empty());
        let run = RunScope { settings: &settings, input: &input, cx: &cx, catalog: &catalog, session: &session };
        let mut call_ids = claim_call_ids(&settings, &messages, &cx);
        let plan = earlier_steps.plan(prior, &messages, &run).await;
        let steps = RunSteps::new(&run, instructions, messages, plan, earlier_steps.count);
        let mut steps = RunSteps { sampling, ..steps };
        let mut predictor = StatePredictor::new(&settings.options.predict_state, &session);
        let mut events = Vec::new();
        loop {
            let calls = std::mem::take(&mut steps.plan.calls);
            marks::start(&cx, &calls).await;
            let mut calls = RunningCalls::start(calls, &run);
            while let Some(outcome) = calls.next().await {
                let is_result = matches!(outcome, CallOutcome::Result(..));
                for event in steps.take_outcome(outcome, &mut predictor) {
                    yield event;
                }
                if is_result {
                    marks::result(&cx);
                }
            }
            drop(calls);
            if let Some(step) = steps.step.take() {
                yield step.finish();
            }
            if let ControlFlow::Break(last) = steps.after_calls()? {
                if let Some(event) = last {
                    yield event;
                }
                return;
            }
            yield steps.begin_step()?;
            let mut request = steps.request(models.chosen(), &session.state());
            if let Some(summary) = steps.summarise(&mut request).await {
                yield summary;
            }
            let foreign = ForeignTexts { cx: &cx, messages: &steps.messages, current: request.current.clone() };
            let (provider, mut stream) = models.open(request, &cx).await;
            let mut answer = AnswerBuilder::new(provider, &mut call_ids, foreign);
            while let Some(event) = stream.next().await {
                if let Some(usage) = answer.read(event?, &mut events).await {
                    cx.add_usage(usage);
                }
                predictor.follow(&mut events);
                for event in events.drain(..) {
                    yield event;
                }
            }
            drop(stream);
            let answer = answer.finish()?;
            if let Some(event) = steps.review(answer).await {
                yield event;
            }
            marks::answer(&run, steps.number, &steps.next, steps.has_calls(), &steps.messages);
        }
    }
}

/// Returns the settings with what the caller and the request change, and the request's options.
async fn settings_of_run(
    settings: Arc<Settings>,
    input: &RunAgentInput,
    cx: &RunContext,
) -> Result<(Arc<Settings>, RequestSampling), AgentError> {
    let mut settings = with_tools_of_run(settings, cx).await;
    let mut options = ChosenOptions::from_input(input);
    options.apply_schema(&mut settings)?;
    Ok((settings, options.sampling))
}

/// Returns the settings with the tools of the run, which replace those of the agent if they depend on the caller.
async fn with_tools_of_run(mut settings: Arc<Settings>, cx: &RunContext) -> Arc<Settings> {
    if let Some(tools) = settings.tools.for_run(cx).await {
        Arc::make_mut(&mut settings).tools = tools;
    }
    settings.tools.ready().await;
    settings
}

/// Takes the ids of the conversation's calls, so that no task of a subagent uses them.
fn claim_call_ids(settings: &Settings, messages: &[Message], cx: &RunContext) -> CallIds {
    let used_ids = marks::used_ids(messages, cx);
    if !settings.subagents.is_empty() {
        used_ids.iter().for_each(|id| _ = cx.claim_id(id));
    }
    CallIds::new(cx.clone(), used_ids)
}

/// The state between the steps of a run.
struct RunSteps<'r> {
    run: &'r RunScope<'r>,
    tool_choice: ToolChoice,
    instructions: Vec<String>,
    /// The application's context entries.
    context: Option<String>,
    messages: Vec<Message>,
    /// The calls that run before the model is asked, and the questions for people.
    plan: StepPlan,
    /// True if `plan` has calls that people decided before the run.
    resumes_calls: bool,
    next: NextStep,
    step: Option<Step>,
    /// The number of the current step; 1 is the first.
    number: u32,
    has_corrected: bool,
    /// True if the model was asked again in this step, because its answer was empty.
    was_repeated: bool,
    /// The text at the end of the next request alone.
    note: Option<&'static str>,
    may_summarise: bool,
    /// The options that the request chooses.
    sampling: RequestSampling,
}

impl<'r> RunSteps<'r> {
    fn new(
        run: &'r RunScope<'r>,
        instructions: Vec<String>,
        messages: Vec<Message>,
        plan: StepPlan,
        number: u32,
    ) -> Self {
        let RunScope { settings, input, cx, catalog, .. } = *run;
        Self {
            run,
            tool_choice: catalog
                .forced_by_application(input)
                .unwrap_or_else(|| settings.options.tool_choice.clone()),
            instructions,
            context: describe_context(input, cx),
            messages,
            resumes_calls: !plan.calls.is_empty(),
            plan,
            next: NextStep::AskModel,
            step: None,
            number,
            has_corrected: false,
            was_repeated: false,
            note: None,
            may_summarise: true,
            sampling: RequestSampling::default(),
        }
    }

    fn has_calls(&self) -> bool {
        !self.plan.calls.is_empty()
            || !self.plan.interrupts.is_empty()
            || self.plan.awaits_application
    }

    /// Returns the events for the client.
    fn take_outcome(
        &mut self,
        outcome: CallOutcome,
        predictor: &mut StatePredictor<'_>,
    ) -> Vec<Event> {
        match outcome {
            CallOutcome::Event(event) => vec![event],
            CallOutcome::Questions(questions) => {
                self.plan.interrupts.extend(questions);
                Vec::new()
            }
            CallOutcome::Result(events, message) => {
                predictor.settle(&message);
                self.messages.push(message);
                events
            }
        }
    }

    /// Prepares the next request after the calls of a step. A break ends the run, with an event
    /// unless the run just finishes.
    fn after_calls(&mut self) -> Result<ControlFlow<Option<Event>>, AgentError> {
        let plan = std::mem::take(&mut self.plan);
        if !plan.interrupts.is_empty() {
            return Ok(ControlFlow::Break(Some(emit::interrupt(self.run.cx, plan.interrupts))));
        }
        // The application answers its calls of the step in its next request.
        let resumes_calls = std::mem::take(&mut self.resumes_calls);
        if plan.awaits_application
            || resumes_calls && has_open_calls_of_application(&self.messages, self.run.catalog)
        {
            return Ok(ControlFlow::Break(None));
        }
        match std::mem::replace(&mut self.next, NextStep::AskModel) {
            NextStep::AskModel => {}
            NextStep::AskForCorrection(request) => {
                self.has_corrected = true;
                self.messages.push(request);
            }
            NextStep::AskAgain(note) => {
                (self.was_repeated, self.note) = (true, note);
                self.number -= 1;
            }
            NextStep::Finish(result) => {
                return Ok(ControlFlow::Break(
                    result.map(|result| emit::finish(self.run.cx, result)),
                ));
            }
            NextStep::Fail(error) => return Err(error),
        }
        Ok(ControlFlow::Continue(()))
    }

    fn begin_step(&mut self) -> Result<Event, AgentError> {
        if self.number == self.run.settings.options.max_steps.get() {
            let message =
                format!("the agent reached its limit of {} steps before it was done", self.number);
            return Err(AgentError::new(RunErrorCode::MaxSteps, message));
        }
        self.number += 1;
        Ok(self.step.insert(Step::new(format!("step {}", self.number))).start())
    }

    fn request(&self, model: Option<String>, state: &Value) -> ModelRequest {
        let RunScope { settings, input, catalog, .. } = self.run;
        let state = settings.shares_state().then(|| state::describe(state));
        let may_force_call = self.number == 1 && follows_user(&self.messages);
        let mut steps = history::steps(&self.messages);
        steps.extend(self.note.map(|note| ModelStep::User(vec![ContentPart::text(note)])));
        ModelRequest {
            model,
            system: self.instructions.clone(),
            current: self.context.iter().cloned().chain(state).collect(),
            steps,
            tools: catalog.specs.clone(),
            tool_choice: catalog.choice(&self.tool_choice, may_force_call),
            response_schema: settings.response.as_ref().map(|format| format.schema.clone()),
            thinking: input.deep_thinking(),
            sampling: self.sampling.clone(),
            ..ModelRequest::default()
        }
    }

    /// Shortens a request that is too long, by a summary. Returns the event that stores the summary.
    async fn summarise(&mut self, request: &mut ModelRequest) -> Option<Event> {
        let window = self.run.settings.window.as_ref().filter(|_| self.may_summarise)?;
        window.summarise(request, &mut self.messages, self.run.cx).await.unwrap_or_else(|error| {
            tracing::warn!(
                ?error,
                "the conversation could not be summarised; this run does not try again"
            );
            self.may_summarise = false;
            None
        })
    }

    /// Keeps the answer and plans the next step. Returns an event about the answer.
    async fn review(&mut self, answer: CompleteAnswer) -> Option<Event> {
        let empty_answer = EmptyAnswer::from_answer(&answer);
        let review = if let Some(empty_answer) = empty_answer {
            empty_answer.review(&answer, &self.messages, self.was_repeated, self.run)
        } else {
            (self.was_repeated, self.note) = (false, None);
            let may_correct =
                !self.has_corrected && self.number < self.run.settings.options.max_steps.get();
            Review::from_answer(&answer, self.number, self.run, may_correct).await
        };
        // Thoughts without an answer do not return to the model.
        if empty_answer.is_none() || !answer.calls().is_empty() || !answer.text().trim().is_empty()
        {
            self.messages.extend(answer.messages);
        }
        (self.plan, self.next) = (review.plan, review.next);
        review.event
    }
}

fn follows_user(messages: &[Message]) -> bool {
    let last = messages.iter().rev().find(|message| {
        message.subagent_run_id().is_none()
            && matches!(message, Message::User(_) | Message::Assistant(_) | Message::Tool(_))
    });
    matches!(last, Some(Message::User(_)))
}

fn has_open_calls_of_application(messages: &[Message], catalog: &ToolCatalog) -> bool {
    let open = history::open_calls(messages);
    open.iter()
        .any(|(call, _)| matches!(catalog.owner(&call.function.name), Some(ToolOwner::Application)))
}

fn instructions(
    settings: &Settings,
    input: &RunAgentInput,
    cx: &RunContext,
) -> Result<Vec<String>, AgentError> {
    let of_run = settings.prompt.as_ref().map(|prompt| prompt(input, cx));
    let of_surfaces = input.context.iter().filter(|entry| is_instruction(entry, cx));
    let of_surfaces = of_surfaces.map(|entry| format!("{}\n{}", entry.description, entry.value));
    let configured = settings
        .system_prompt
        .as_ref()
        .map(|prompt| prompt.for_caller(cx.principal()))
        .transpose()?;
    let mut instructions: Vec<String> =
        configured.into_iter().chain(of_surfaces).chain(of_run).collect();
    instructions.retain(|text| !text.trim().is_empty());
    Ok(instructions)
}

/// Returns whether a context entry stands before the conversation, where providers cache it:
/// entries about A2UI, which are long and stay the same. A page's own entry does only if pages may
/// instruct the model.
fn is_instruction(entry: &Context, cx: &RunContext) -> bool {
    let is_trusted = |surfaces: &Arc<RunSurfaces>| {
        cx.accepts_instructions() || a2ui::is_of_server(surfaces, entry)
    };
    a2ui::is_about_surfaces(entry) && cx.surfaces.as_ref().is_some_and(is_trusted)
}

fn describe_context(input: &RunAgentInput, cx: &RunContext) -> Option<String> {
    let entries = input.context.iter().filter(|entry| !is_instruction(entry, cx));
    let entries: String =
        entries.map(|entry| format!("\n- {}: {}", entry.description, entry.value)).collect();
    (!entries.is_empty())
        .then(|| format!("What the application says about the situation:{entries}"))
}
