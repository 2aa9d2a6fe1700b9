//! Decides the next step after an answer of the model: its calls run, it ends the run, or the model has to correct it.

use serde_json::{Value, json};

use super::{
    answer::CompleteAnswer, calls::RunScope, plan::TurnPlan, response::ResponseFormat, truncation::Truncation,
};
use crate::{
    agent::AgentError,
    base::RunErrorCode,
    protocol::{Event, Message, MessageId, event::Custom, own_names::RESPONSE_REJECTED},
};

/// The consequences of an answer.
pub(super) struct Review {
    /// An event for the client about the answer.
    pub(super) event: Option<Event>,
    pub(super) plan: TurnPlan,
    pub(super) next: NextStep,
}

/// The step after the calls of a plan.
pub(super) enum NextStep {
    AskModel,
    /// The model is asked again, with this message of the request alone. The thread does not keep it.
    AskForCorrection(Message),
    /// The model is asked again in the same step, with this text at the end of the request alone.
    AskAgain(Option<&'static str>),
    Finish(Option<Value>),
    Fail(AgentError),
}

impl Review {
    /// `may_correct` is `false` if the model cannot be asked for another answer.
    pub(super) async fn of_answer(answer: &CompleteAnswer, step: u32, run: &RunScope<'_>, may_correct: bool) -> Self {
        let calls = answer.calls();
        let plan = || TurnPlan::of_turn(&calls, run);
        match (Truncation::of_answer(answer, step), &run.settings.response) {
            (Some(truncation), format) => {
                let reason = truncation.reason;
                tracing::warn!(reason, step, "the model's answer ended before the model was done");
                if truncation.runs_calls {
                    return Self { event: truncation.event(), plan: plan().await, next: NextStep::AskModel };
                }
                let plan = TurnPlan::without_calls(&calls, run.catalog, &truncation.call_result());
                // A part of a value is not usable.
                if format.is_some() {
                    return Self { event: None, plan, next: NextStep::Fail(truncation.into_error()) };
                }
                let event = truncation.event();
                let next =
                    truncation.into_result().map_or_else(NextStep::Fail, |result| NextStep::Finish(Some(result)));
                Self { event, plan, next }
            }
            (None, _) if !calls.is_empty() => Self { event: None, plan: plan().await, next: NextStep::AskModel },
            (None, Some(format)) => Self::of_response(answer, format, may_correct).await,
            (None, None) => Self { event: None, plan: TurnPlan::default(), next: NextStep::Finish(None) },
        }
    }

    async fn of_response(answer: &CompleteAnswer, format: &ResponseFormat, may_correct: bool) -> Self {
        let (event, next) = match format.parse(&answer.text()).await {
            Ok(value) => (None, NextStep::Finish(Some(value))),
            Err(problem) if may_correct => {
                let message = answer.messages.last().map(Message::id);
                let event = Custom::new(RESPONSE_REJECTED, json!({ "messageId": message, "problem": problem }));
                let request = format!("Your answer cannot be used: {problem}\nAnswer again, with the JSON alone.");
                let request = Message::user(MessageId::random(), request);
                (Some(event.into()), NextStep::AskForCorrection(request))
            }
            Err(problem) => {
                let message = "the model's answer does not fit the schema of the agent's answers";
                (None, NextStep::Fail(AgentError::new(RunErrorCode::ResponseInvalid, message).caused_by(problem)))
            }
        };
        Self { event, plan: TurnPlan::default(), next }
    }
}

#[cfg(test)]
mod tests;
