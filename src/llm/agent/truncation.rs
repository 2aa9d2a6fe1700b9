//! Answers that ended before the model was done: what the client is told, and whether their calls run.

use serde_json::{Value, json};

use super::answer::CompleteAnswer;
use crate::{
    agent::AgentError,
    base::RunErrorCode,
    llm::model::StopReason,
    protocol::{Event, Message, MessageId, ToolCall, event::Custom, own_names::TRUNCATED},
    tools::CallArguments,
};

/// The member of the run's result.
const RESULT_MEMBER: &str = "truncated";
const CUT_OFF: &str = "the answer was cut off at its limit of tokens. Make fewer or shorter calls";

/// An answer that ended before the model was done.
pub(super) struct Truncation {
    pub(super) reason: &'static str,
    /// The code and the message of the run's error, if nothing of the answer is usable.
    error: (RunErrorCode, &'static str),
    /// The reason for the model why calls are not run.
    why_no_calls: &'static str,
    /// The last message of the answer.
    message: Option<MessageId>,
    step: u32,
    has_text: bool,
    /// `true` if the answer has calls, and the limit came after the last of them.
    pub(super) runs_calls: bool,
}

impl Truncation {
    /// Returns `None` if the model was done.
    pub(super) fn of_answer(answer: &CompleteAnswer, step: u32) -> Option<Self> {
        let (reason, reached_limit, why_no_calls, error) = match answer.stop {
            StopReason::Done | StopReason::Calls | StopReason::MalformedCall => return None,
            StopReason::Length => {
                let message = "the model's answer reached its limit of tokens (max_tokens) before it was usable";
                ("length", true, CUT_OFF, (RunErrorCode::ModelTruncated, message))
            }
            StopReason::ContextFull => {
                let message = "the conversation fills the model's context window: shorten it, or begin a new one";
                ("context_full", true, CUT_OFF, (RunErrorCode::ContextTooLong, message))
            }
            StopReason::Filtered => {
                let message = "a content filter of the model's provider stopped the answer";
                ("filtered", false, "a content filter stopped the answer", (RunErrorCode::ModelFiltered, message))
            }
            StopReason::Refused => (
                "refused",
                false,
                "the answer was refused",
                (RunErrorCode::ModelRefused, "the model refused to answer"),
            ),
        };
        let calls = answer.calls();
        let is_complete = |(at, call): (usize, &ToolCall)| is_complete(call, at + 1 == calls.len());
        let message = answer.messages.iter().rev().find(|message| matches!(message, Message::Assistant(_)));
        Some(Self {
            reason,
            error,
            why_no_calls,
            message: message.map(|message| message.id().clone()),
            step,
            has_text: !answer.text().trim().is_empty(),
            runs_calls: reached_limit
                && !calls.is_empty()
                && calls.iter().map(|(call, _)| *call).enumerate().all(is_complete),
        })
    }

    /// Returns `None` if nothing of the answer is usable: then the run fails.
    pub(super) fn event(&self) -> Option<Event> {
        (self.has_text || self.runs_calls).then(|| Custom::new(TRUNCATED, self.to_json()).into())
    }

    /// Returns the result of the run, or its error if nothing of the answer is usable.
    pub(super) fn into_result(self) -> Result<Value, AgentError> {
        if self.has_text { Ok(json!({ RESULT_MEMBER: self.to_json() })) } else { Err(self.into_error()) }
    }

    pub(super) fn into_error(self) -> AgentError {
        let (code, message) = self.error;
        AgentError::new(code, message)
    }

    /// Returns the result of a call that is not run, for the model.
    pub(super) fn call_result(&self) -> String {
        format!("Error: the call was not run, because {}.", self.why_no_calls)
    }

    fn to_json(&self) -> Value {
        json!({ "reason": self.reason, "messageId": self.message, "step": self.step })
    }
}

/// Returns the reason in the result of a run whose answer was truncated.
pub(super) fn reason_of_result(result: &Value) -> Option<&str> {
    result.get(RESULT_MEMBER)?.get("reason")?.as_str()
}

/// No part of a JSON object is an object itself. Empty arguments say nothing about the last call: a provider's stream
/// can end before it sends any, and Anthropic's `tool_use` blocks begin with `{}`
/// (<https://platform.claude.com/docs/en/build-with-claude/handling-stop-reasons>).
fn is_complete(call: &ToolCall, is_last: bool) -> bool {
    CallArguments::read(&call.function.arguments).is_ok_and(|arguments| !arguments.object.is_empty() || !is_last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_complete_if_its_arguments_cannot_go_on() {
        for (arguments, is_last, expected) in [
            (r#"{"a":1}"#, true, true),
            (r#"{"a":"#, true, false),
            (r#"{"a":"#, false, false),
            ("{}", true, false),
            ("", true, false),
            ("{}", false, true),
            (" ", false, true),
            ("1", true, false),
        ] {
            assert_eq!(is_complete(&ToolCall::new("c", "f", arguments), is_last), expected, "{arguments:?} {is_last}");
        }
    }
}
