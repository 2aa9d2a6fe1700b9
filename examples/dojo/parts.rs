//! Helpers of several features: the last tool result, messages of answered calls, and the pace.

use std::{num::ParseFloatError, str::FromStr, time::Duration};

use agui_server::protocol::{
    AssistantMessage, Message, MessageId, RunAgentInput, ToolCall, ToolCallId, ToolMessage,
};
use serde_json::Value;

/// The factor of a feature's pauses.
#[derive(Clone, Copy)]
pub(crate) struct Pace(f64);

impl Default for Pace {
    fn default() -> Self {
        Self(1.0)
    }
}

impl FromStr for Pace {
    type Err = ParseFloatError;

    /// Parses the factor. An infinite or invalid factor means no pauses.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let factor: f64 = text.parse()?;
        Ok(Self(if factor.is_finite() { factor.clamp(0.0, 100.0) } else { 0.0 }))
    }
}

impl Pace {
    /// Waits, so that a person sees the events arrive one by one.
    pub(crate) async fn pause(self, millis: u64) {
        let time = Duration::from_millis(millis).mul_f64(self.0);
        if !time.is_zero() {
            tokio::time::sleep(time).await;
        }
    }
}

/// Returns the tool result at the end of the conversation, with which the page has answered a call.
pub(crate) fn last_result(input: &RunAgentInput) -> Option<&ToolMessage> {
    match input.messages.last()? {
        Message::Tool(result) => Some(result),
        _ => None,
    }
}

/// A person's decision as the dojo's pages send it: `{"accepted": …}` and other members.
pub(crate) struct Decision {
    pub(crate) accepted: bool,
    pub(crate) answer: Value,
}

impl Decision {
    /// Reads a tool result. Without `accepted`, the person has accepted unless the result has an error.
    pub(crate) fn of(result: &ToolMessage) -> Self {
        let answer = serde_json::from_str(&result.content.text()).unwrap_or(Value::Null);
        let accepted =
            answer.get("accepted").and_then(Value::as_bool).unwrap_or(result.error.is_none());
        Self { accepted, answer }
    }
}

/// Returns the calls of a tool in the conversation, the newest first.
pub(crate) fn calls<'a>(
    input: &'a RunAgentInput,
    tool: &'a str,
) -> impl Iterator<Item = &'a ToolCall> {
    let newest_first = input.messages.iter().rev().filter_map(|message| match message {
        Message::Assistant(message) => Some(message.tool_calls().iter().rev()),
        _ => None,
    });
    newest_first.flatten().filter(move |call| call.function.name == tool)
}

/// Returns a call of a tool of the agent and its result, as messages.
pub(crate) fn answered_call(
    tool: &str,
    arguments: &Value,
    result: impl Into<String>,
) -> [Message; 2] {
    let call = ToolCallId::random();
    let mut asks = AssistantMessage::new(MessageId::random());
    asks.tool_calls = Some(vec![ToolCall::new(call.clone(), tool, arguments.to_string())]);
    let answers = ToolMessage {
        id: MessageId::random(),
        content: result.into().into(),
        tool_call_id: call,
        error: None,
        encrypted_value: None,
        encrypted_value_type: None,
        metadata: None,
        subagent_run_id: None,
    };
    [Message::Assistant(asks), Message::Tool(answers)]
}

/// Returns the conversation so far with more messages at its end.
pub(crate) fn followed_by(
    input: &RunAgentInput,
    more: impl IntoIterator<Item = Message>,
) -> Vec<Message> {
    input.messages.iter().cloned().chain(more).collect()
}
