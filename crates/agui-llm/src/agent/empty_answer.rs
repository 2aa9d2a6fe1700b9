//! Empty answers: nothing in them, thoughts alone, or a call that the provider could not read.
//!
//! The model is asked again once, in the same step. Then the run fails, unless tools have
//! succeeded: the model may have nothing to add to their results.

use serde_json::json;

use super::{
    answer::CompleteAnswer,
    plan::StepPlan,
    review::{NextStep, Review},
    run_scope::RunScope,
};
use crate::{history, model::StopReason};
use agui_agent::AgentError;
use agui_base::{
    RunErrorCode,
    repairs::{Partner, Repair, repaired},
};
use agui_protocol::{Message, event::Custom, own_names::ANSWER_EMPTY};

const WRITE_THE_ANSWER: &str = "[Note of the server, not of the user: your last answer was empty. Write the answer to the user \
                                now.]";
const CALL_AGAIN: &str = "[Note of the server, not of the user: your last tool call could not be read. Call the tool again, \
                          with its exact name and with one valid JSON object as arguments, or answer without it.]";
const NOT_READ: &str =
    "Error: the call was not run, because another call of the answer could not be read.";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EmptyAnswer {
    Nothing,
    /// The client has seen the thoughts.
    Thoughts,
    MalformedCall,
}

impl EmptyAnswer {
    /// Returns `None` for a usable answer.
    pub(super) fn from_answer(answer: &CompleteAnswer) -> Option<Self> {
        match answer.stop {
            StopReason::MalformedCall => Some(Self::MalformedCall),
            StopReason::Done | StopReason::Calls => {
                let is_empty = answer.calls().is_empty()
                    && answer.text().trim().is_empty()
                    && !answer.has_media;
                let has_thoughts =
                    answer.messages.iter().any(|message| matches!(message, Message::Reasoning(_)));
                let kind = if has_thoughts { Self::Thoughts } else { Self::Nothing };
                is_empty.then_some(kind)
            }
            _ => None,
        }
    }

    /// `messages` come before the answer. `was_repeated` is true if the model was already asked
    /// again.
    pub(super) fn review(
        self,
        answer: &CompleteAnswer,
        messages: &[Message],
        was_repeated: bool,
        run: &RunScope<'_>,
    ) -> Review {
        let plan = StepPlan::without_calls(&answer.calls(), run.catalog, NOT_READ);
        tracing::warn!(kind = ?self, was_repeated, "the model's answer is empty or unreadable");
        if !was_repeated {
            repaired(Partner::Model, Repair::AskedAgain);
        }
        let has_results = history::last_results(messages).next().is_some();
        let (event, next) = match self {
            Self::MalformedCall if !was_repeated => (None, NextStep::AskAgain(Some(CALL_AGAIN))),
            Self::MalformedCall => (
                None,
                fail(
                    RunErrorCode::ModelCallMalformed,
                    "the model wrote a tool call that its provider could not read",
                ),
            ),
            Self::Nothing if !was_repeated && !has_results => (None, NextStep::AskAgain(None)),
            _ if !was_repeated => (None, NextStep::AskAgain(Some(WRITE_THE_ANSWER))),
            _ if run.settings.response.is_none()
                && history::last_results(messages).any(|result| !history::is_failed(result)) =>
            {
                let reason =
                    json!({ "reason": "the model had nothing to add to the results of its tools" });
                (Some(Custom::new(ANSWER_EMPTY, reason).into()), NextStep::Finish(None))
            }
            _ => (None, fail(RunErrorCode::ModelEmpty, "the model's answer is empty: try again")),
        };
        Review { event, plan, next }
    }
}

fn fail(code: RunErrorCode, message: &'static str) -> NextStep {
    NextStep::Fail(AgentError::new(code, message))
}

#[cfg(test)]
mod tests;
