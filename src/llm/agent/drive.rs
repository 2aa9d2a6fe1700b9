//! The steps of a run: what people decided, then the model and what it called, again and again.

use std::sync::Arc;

use async_stream::try_stream;
use futures::{Stream, StreamExt as _};
use serde_json::Value;

use super::{
    Core,
    answer::Answer,
    approval,
    calls::{Outcome, Plan, Scene, carry_out},
    offer::{Kind, Offer},
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
    tools::ToolContext,
};

/// The member of `forwardedProps` by which a client asks a model to think, or not to.
const DEEP_THINKING: &str = "enableDeepThinking";

/// Drives a run.
pub(super) fn drive(
    core: Arc<Core>,
    mut input: RunAgentInput,
    cx: RunContext,
) -> impl Stream<Item = Result<Event, AgentError>> + Send {
    try_stream! {
        core.tools.ready().await;
        let offer = Offer::new(&core, &input);
        let mut messages = std::mem::take(&mut input.messages).into_vec();
        let earlier = approval::earlier(&messages, &input.resume, &offer);
        // Nothing is done while something is unanswered, also not what was agreed to.
        if !earlier.open.is_empty() {
            yield emit::interrupt(&cx, earlier.open);
            return;
        }
        let tools = ToolContext {
            thread_id: cx.thread_id().clone(),
            run_id: cx.run_id().clone(),
            principal: cx.principal().map(|principal| principal.shared_id().clone()),
        };
        let scene = Scene { core: &core, input: &input, cx: &cx, tools: &tools };
        let instructions = instructions(&core, &input);
        let mut state = input.state_or_empty();
        let mut taken = history::call_ids(&messages);
        let mut told = Vec::new();
        let mut step: Option<Step> = None;
        let mut steps = 0;
        let (mut plan, mut has_calls) = (Plan::of_decisions(earlier.decided, &offer), true);
        loop {
            let is_decided = steps == 0 && !plan.work.is_empty();
            let mut outcomes = carry_out(plan.work, &mut state, &scene);
            // A subagent's changes are seen here once all of them are made.
            let mut changes = Vec::new();
            while let Some(outcome) = outcomes.next().await {
                match outcome {
                    Outcome::Event(event) => {
                        if event.subagent_run_id().is_some() && is_of_state(&event) {
                            changes.push(event.clone());
                        }
                        yield event;
                    }
                    Outcome::Answered(answer) => {
                        let (event, message) = answer.tell();
                        messages.push(message);
                        yield event;
                    }
                }
            }
            drop(outcomes);
            for change in changes {
                state::follow(&mut state, &change);
            }
            if let Some(step) = step.take() {
                yield step.finish();
            }
            if !plan.asked.is_empty() {
                yield emit::interrupt(&cx, plan.asked);
                return;
            }
            // The application has its part of the turn to answer, and then comes back.
            if !has_calls || plan.awaits_application || is_decided && awaits_application(&messages, &offer) {
                return;
            }
            if steps == core.max_steps {
                let message = format!("the agent took {steps} steps, which is as many as it may, and had more to do");
                Err(AgentError::new("max_steps", message))?;
            }
            steps += 1;
            yield step.insert(Step::new(format!("step {steps}"))).start();
            let mut system = instructions.clone();
            if core.updates_state {
                system.push(state::describe(&state));
            }
            let mut stream = core.model.stream(ModelRequest {
                system,
                turns: history::turns(&messages),
                tools: offer.specs(),
                thinking: input.forwarded_prop(DEEP_THINKING).and_then(Value::as_bool),
            });
            let mut answer = Answer::new(core.model.provider(), &mut taken);
            while let Some(event) = stream.next().await {
                if let Some(usage) = answer.take(event?, &mut told) {
                    cx.add_usage(usage);
                }
                for event in told.drain(..) {
                    yield event;
                }
            }
            drop(stream);
            let answered = answer.finish()?;
            match answered.stop {
                StopReason::Refused => {
                    Err(AgentError::new("model_refused", "the model, or its provider, refuses to answer this"))?;
                }
                StopReason::Length => {
                    tracing::warn!(model = core.model.name(), "the answer reached the limit of tokens");
                }
                StopReason::Done | StopReason::Calls => {}
            }
            messages.extend(answered.messages);
            has_calls = !answered.calls.is_empty();
            plan = Plan::of_turn(&answered.calls, &offer);
        }
    }
}

fn is_of_state(event: &Event) -> bool {
    matches!(event, Event::StateSnapshot(_) | Event::StateDelta(_))
}

/// Whether the last turn has calls that only the application can answer.
fn awaits_application(messages: &[Message], offer: &Offer) -> bool {
    let last = messages.iter().rposition(|message| matches!(message, Message::User(_))).map_or(0, |last| last + 1);
    let open = history::unanswered(&messages[last..]);
    open.iter().any(|call| matches!(offer.kind(&call.function.name), Some(Kind::Application)))
}

/// What stands before the conversation: the agent's own instructions, and what the application wants it to know.
fn instructions(core: &Core, input: &RunAgentInput) -> Vec<String> {
    let mut instructions: Vec<String> =
        core.system_prompt.iter().filter(|text| !text.trim().is_empty()).cloned().collect();
    if !input.context.is_empty() {
        let mut text = String::from("What the application says about the situation:");
        for entry in &input.context {
            text.push_str(&format!("\n- {}: {}", entry.description, entry.value));
        }
        instructions.push(text);
    }
    instructions
}
