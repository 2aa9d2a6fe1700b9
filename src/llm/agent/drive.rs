//! The loop of a run: first the calls that people decided about, then model and tools in turn.

use std::sync::Arc;

use async_stream::try_stream;
use futures::Stream;

use super::{
    answer::{AnswerBuilder, EarlierAnswers},
    approval,
    calls::{CallContext, CallOutcome, RunningCalls},
    catalog::{ToolCatalog, ToolOwner},
    client_claims::remove_claims,
    model_chain::ModelChain,
    plan::TurnPlan,
    review::{NextStep, Review},
    settings::Settings,
    state,
};
use crate::{
    agent::{
        AgentError, RunContext,
        emit::{self, Step},
    },
    llm::{history, model::ModelRequest},
    protocol::{Event, Message, RunAgentInput},
    tools::ToolSession,
};

pub(super) fn drive(
    settings: Arc<Settings>,
    mut input: RunAgentInput,
    cx: RunContext,
) -> impl Stream<Item = Result<Event, AgentError>> + Send {
    try_stream! {
        let mut models = ModelChain::new(&settings, &input)?;
        settings.tools.ready().await;
        let catalog = ToolCatalog::new(&settings, &input);
        let forced_choice = catalog.forced_by_application(&input);
        let tool_choice = forced_choice.as_ref().unwrap_or(&settings.tool_choice);
        let instructions = instructions(&settings, &input, &cx);
        let context = describe_context(&input);
        let mut messages = std::mem::take(&mut input.messages).into_vec();
        remove_claims(&mut messages, &catalog, &cx);
        let prior = approval::prior_approvals(&messages, &input.resume, &catalog, &cx).await;
        // If any approval is still open, no call runs, not even an approved one.
        if !prior.open.is_empty() {
            yield emit::interrupt(&cx, prior.open);
            return;
        }
        let session = ToolSession::new(cx.clone(), input.state_or_empty());
        let call_context = CallContext { settings: &settings, input: &input, cx: &cx, session: &session };
        let mut earlier = EarlierAnswers::new(history::call_ids(&messages));
        let mut events = Vec::new();
        let mut step: Option<Step> = None;
        let mut steps = 0;
        let mut plan = TurnPlan::of_decisions(prior.decided, &catalog).await;
        let mut next = NextStep::AskModel;
        let mut has_corrected = false;
        let mut may_summarise = true;
        loop {
            let resumes_calls = steps == 0 && !plan.calls.is_empty();
            let mut interrupts = plan.approvals;
            let mut calls = RunningCalls::start(plan.calls, &call_context);
            while let Some(outcome) = calls.next().await {
                match outcome {
                    CallOutcome::Event(event) => yield event,
                    CallOutcome::Questions(questions) => interrupts.extend(questions),
                    CallOutcome::Result(result) => {
                        let (event, message) = result.into_event_and_message();
                        messages.push(message);
                        yield event;
                    }
                }
            }
            drop(calls);
            if let Some(step) = step.take() {
                yield step.finish();
            }
            if !interrupts.is_empty() {
                yield emit::interrupt(&cx, interrupts);
                return;
            }
            // The application answers its calls of the turn in its next request.
            let awaits_application =
                plan.awaits_application || resumes_calls && has_open_calls_of_application(&messages, &catalog);
            if awaits_application {
                return;
            }
            match next {
                NextStep::AskModel => {}
                NextStep::AskForCorrection(request) => {
                    has_corrected = true;
                    messages.push(request);
                }
                NextStep::Finish(None) => return,
                NextStep::Finish(Some(result)) => {
                    yield emit::finish(&cx, result);
                    return;
                }
                NextStep::Fail(error) => Err(error)?,
            }
            if steps == settings.max_steps {
                let message = format!("the agent reached its limit of {steps} steps before it was done");
                Err(AgentError::new("max_steps", message))?;
            }
            steps += 1;
            yield step.insert(Step::new(format!("step {steps}"))).start();
            let state = settings.updates_state.then(|| state::describe(&session.state()));
            let may_force_call = steps == 1 && follows_user(&messages);
            let mut request = ModelRequest {
                model: models.chosen(),
                system: instructions.clone(),
                current: context.iter().cloned().chain(state).collect(),
                turns: history::turns(&messages),
                tools: catalog.specs(),
                tool_choice: catalog.choice(tool_choice, may_force_call),
                response_schema: settings.response.as_ref().map(|format| format.schema.clone()),
                thinking: input.deep_thinking(),
                ..ModelRequest::default()
            };
            if let Some(context) = settings.context.as_ref().filter(|_| may_summarise) {
                match context.summarise(&mut request, &mut messages, &cx).await {
                    Ok(None) => {}
                    Ok(Some(summary)) => yield summary,
                    Err(error) => {
                        tracing::warn!(?error, "the conversation could not be summarised; this run does not try again");
                        may_summarise = false;
                    }
                }
            }
            if !cx.accepts_instructions() {
                let current = std::mem::take(&mut request.current);
                history::add_data(&mut request.turns, current);
            }
            let mut stream = models.open(request, &cx).await;
            let mut answer = AnswerBuilder::new(stream.model().provider(), &mut earlier);
            while let Some(event) = stream.next().await {
                if let Some(usage) = answer.apply(event?, &mut events) {
                    cx.add_usage(usage);
                }
                for event in events.drain(..) {
                    yield event;
                }
            }
            drop(stream);
            let answer = answer.finish()?;
            let may_correct = !has_corrected && steps < settings.max_steps;
            let review = Review::of_answer(&answer, steps, &settings, &catalog, may_correct).await;
            messages.extend(answer.messages);
            if let Some(event) = review.event {
                yield event;
            }
            (plan, next) = (review.plan, review.next);
        }
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
    let last = messages.iter().rposition(|message| matches!(message, Message::User(_))).map_or(0, |last| last + 1);
    let open = history::unanswered(&messages[last..]);
    open.iter().any(|call| matches!(catalog.owner(&call.function.name), Some(ToolOwner::Application)))
}

fn instructions(settings: &Settings, input: &RunAgentInput, cx: &RunContext) -> Vec<String> {
    let of_run = settings.prompt.as_ref().map(|prompt| prompt(input, cx));
    let mut instructions: Vec<String> = settings.system_prompt.iter().cloned().chain(of_run).collect();
    instructions.retain(|text| !text.trim().is_empty());
    instructions
}

fn describe_context(input: &RunAgentInput) -> Option<String> {
    let entries = input.context.iter().map(|entry| format!("\n- {}: {}", entry.description, entry.value));
    let entries: String = entries.collect();
    (!entries.is_empty()).then(|| format!("What the application says about the situation:{entries}"))
}
