//! Decides the next step after an answer of the model: its calls run, it ends the run, or the model has to correct it.
//!
//! The client is told if an answer ended before the model was done. Its calls run if they are
//! complete.

use serde_json::{Value, json};

use super::{
    answer::CompleteAnswer, plan::StepPlan, run_scope::RunScope, schema::CheckedSchema,
    subagent::TRUNCATED_MEMBER,
};
use crate::model::StopReason;
use agui_agent::AgentError;
use agui_base::RunErrorCode;
use agui_protocol::{
    Event, Message, MessageId, ToolCall,
    event::Custom,
    own_names::{RESPONSE_REJECTED, TRUNCATED},
};
use agui_tools::host::CallArguments;

const CUT_OFF: &str = "the answer was cut off at its limit of tokens. Make fewer or shorter calls";

/// The consequences of an answer.
pub(super) struct Review {
    /// An event for the client about the answer.
    pub(super) event: Option<Event>,
    pub(super) plan: StepPlan,
    pub(super) next: NextStep,
}

/// The step after the calls of a plan.
pub(super) enum NextStep {
    AskModel,
    /// The model is asked again, with this message, which the thread does not keep.
    AskForCorrection(Message),
    /// The model is asked again in the same step, with this text at the end of the request alone.
    AskAgain(Option<&'static str>),
    Finish(Option<Value>),
    Fail(AgentError),
}

impl Review {
    /// `may_correct` is `false` if the model cannot be asked for another answer.
    pub(super) async fn from_answer(
        answer: &CompleteAnswer,
        step: u32,
        run: &RunScope<'_>,
        may_correct: bool,
    ) -> Self {
        if let Some(review) = Self::if_truncated(answer, step, run).await {
            return review;
        }
        let calls = answer.calls();
        match &run.settings.response {
            _ if !calls.is_empty() => Self {
                event: None,
                plan: StepPlan::from_calls(&calls, run).await,
                next: NextStep::AskModel,
            },
            Some(format) => Self::from_response(answer, format, may_correct, run).await,
            None => Self { event: None, plan: StepPlan::default(), next: NextStep::Finish(None) },
        }
    }

    /// Returns `None` if the model was done.
    async fn if_truncated(answer: &CompleteAnswer, step: u32, run: &RunScope<'_>) -> Option<Self> {
        let (reason, reached_limit, why_no_calls, code, message) = match answer.stop {
            StopReason::Done | StopReason::Calls | StopReason::MalformedCall => return None,
            StopReason::Length => {
                let message = "the model's answer reached its limit of tokens (max_tokens) before it was usable";
                ("length", true, CUT_OFF, RunErrorCode::ModelTruncated, message)
            }
            StopReason::ContextFull => {
                let message = "the conversation fills the model's context window: shorten it, or begin a new one";
                ("context_full", true, CUT_OFF, RunErrorCode::ContextTooLong, message)
            }
            StopReason::Filtered => {
                let message = "a content filter of the model's provider stopped the answer";
                (
                    "filtered",
                    false,
                    "a content filter stopped the answer",
                    RunErrorCode::ModelFiltered,
                    message,
                )
            }
            StopReason::Aborted => {
                let message = "the model's provider broke the answer off";
                ("aborted", false, "the answer was cut off", RunErrorCode::ModelTruncated, message)
            }
            StopReason::Refused => {
                let message = "the model refused to answer";
                ("refused", false, "the answer was refused", RunErrorCode::ModelRefused, message)
            }
        };
        tracing::warn!(reason, step, "the model's answer ended before the model was done");
        let last = answer.messages.iter().rfind(|message| matches!(message, Message::Assistant(_)));
        let truncation =
            json!({ "reason": reason, "messageId": last.map(Message::id), "step": step });
        let event = Some(Custom::new(TRUNCATED, truncation.clone()).into());
        let calls = answer.calls();
        let mut numbered = calls.iter().zip(1..);
        if reached_limit
            && !calls.is_empty()
            && numbered.all(|((call, _), number)| is_complete(call, number == calls.len()))
        {
            return Some(Self {
                event,
                plan: StepPlan::from_calls(&calls, run).await,
                next: NextStep::AskModel,
            });
        }
        let result = format!("Error: the call was not run, because {why_no_calls}.");
        let plan = StepPlan::without_calls(&calls, run.catalog, &result);
        // An incomplete value is not usable.
        Some(if run.settings.response.is_some() || answer.text().trim().is_empty() {
            Self { event: None, plan, next: NextStep::Fail(AgentError::new(code, message)) }
        } else {
            Self {
                event,
                plan,
                next: NextStep::Finish(Some(json!({ TRUNCATED_MEMBER: truncation }))),
            }
        })
    }

    async fn from_response(
        answer: &CompleteAnswer,
        format: &CheckedSchema,
        may_correct: bool,
        run: &RunScope<'_>,
    ) -> Self {
        let (event, next) = match format.parse(&run.cx.owner(), &answer.text()).await {
            Ok(value) => (None, NextStep::Finish(Some(value))),
            Err(problem) if may_correct => {
                let message = answer.messages.last().map(Message::id);
                let event = Custom::new(
                    RESPONSE_REJECTED,
                    json!({ "messageId": message, "problem": problem }),
                );
                let request = format!(
                    "Your answer cannot be used: {problem}\nAnswer again, with the JSON alone."
                );
                let request = Message::user(MessageId::random(), request);
                (Some(event.into()), NextStep::AskForCorrection(request))
            }
            Err(problem) => {
                let message = "the model's answer does not fit the schema of the agent's answers";
                (
                    None,
                    NextStep::Fail(
                        AgentError::new(RunErrorCode::ResponseInvalid, message).caused_by(problem),
                    ),
                )
            }
        };
        Self { event, plan: StepPlan::default(), next }
    }
}

/// An incomplete JSON object does not parse. Empty arguments say nothing about the last call: a
/// provider's stream can end before it sends any, and Anthropic's `tool_use` blocks begin with `{}`
/// (<https://platform.claude.com/docs/en/build-with-claude/handling-stop-reasons>).
fn is_complete(call: &ToolCall, is_last: bool) -> bool {
    CallArguments::read(&call.function.arguments)
        .is_ok_and(|arguments| !arguments.object.is_empty() || !is_last)
}

#[cfg(test)]
mod tests;
