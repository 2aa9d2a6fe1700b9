//! The loop of a run: first the calls that people decided about, then model and tools in turn.

use std::sync::Arc;

use async_stream::try_stream;
use futures::{Stream, StreamExt as _};
use serde_json::Value;

use super::{
    answer::AnswerBuilder,
    approval,
    calls::{CallContext, CallOutcome, RunningCalls},
    catalog::{ToolCatalog, ToolOwner},
    plan::TurnPlan,
    settings::Settings,
    state,
};
use crate::{
    agent::{
        AgentError, RunContext,
        emit::{self, Step},
    },
    llm::{
        history,
        model::{ModelRequest, StopReason},
    },
    protocol::{Event, Message, RunAgentInput},
    tools::ToolSession,
};

const DEEP_THINKING: &str = "enableDeepThinking";

pub(super) fn drive(
    settings: Arc<Settings>,
    mut input: RunAgentInput,
    cx: RunContext,
) -> impl Stream<Item = Result<Event, AgentError>> + Send {
    try_stream! {
        settings.tools.ready().await;
        let catalog = ToolCatalog::new(&settings, &input);
        let instructions = instructions(&settings, &input, &cx);
        let mut messages = std::mem::take(&mut input.messages).into_vec();
        let prior = approval::prior_approvals(&messages, &input.resume, &catalog);
        // If any approval is still open, no call runs, not even an approved one.
        if !prior.open.is_empty() {
            yield emit::interrupt(&cx, prior.open);
            return;
        }
        let session = ToolSession::new(cx.clone(), input.state_or_empty());
        let context = CallContext { settings: &settings, input: &input, cx: &cx, session: &session };
        let mut call_ids = history::call_ids(&messages);
        let mut events = Vec::new();
        let mut step: Option<Step> = None;
        let mut steps = 0;
        let mut plan = TurnPlan::of_decisions(prior.decided, &catalog);
        // Before the first step, this says that the model has to be asked.
        let mut has_calls = true;
        loop {
            let resumes_calls = steps == 0 && !plan.calls.is_empty();
            let mut interrupts = plan.approvals;
            let mut calls = RunningCalls::start(plan.calls, &context);
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
            if !has_calls || awaits_application {
                return;
            }
            if steps == settings.max_steps {
                let message = format!("the agent reached its limit of {steps} steps before it was done");
                Err(AgentError::new("max_steps", message))?;
            }
            steps += 1;
            yield step.insert(Step::new(format!("step {steps}"))).start();
            let mut system = instructions.clone();
            if settings.updates_state {
                system.push(state::describe(&session.state()));
            }
            let mut stream = settings.model.stream(ModelRequest {
                system,
                turns: history::turns(&messages),
                tools: catalog.specs(),
                thinking: input.forwarded_prop(DEEP_THINKING).and_then(Value::as_bool),
            });
            let mut answer = AnswerBuilder::new(settings.model.provider(), &mut call_ids);
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
            match answer.stop {
                StopReason::Refused => {
                    Err(AgentError::new("model_refused", "the model or its provider refused to answer"))?;
                }
                StopReason::Length => {
                    tracing::warn!(model = settings.model.name(), "the model's answer reached its limit of tokens");
                }
                StopReason::Done | StopReason::Calls => {}
            }
            messages.extend(answer.messages);
            has_calls = !answer.calls.is_empty();
            plan = TurnPlan::of_turn(&answer.calls, &catalog);
        }
    }
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
    if !input.context.is_empty() {
        let mut text = String::from("What the application says about the situation:");
        for entry in &input.context {
            text.push_str(&format!("\n- {}: {}", entry.description, entry.value));
        }
        instructions.push(text);
    }
    instructions
}
