//! `/interrupt`: the agent wants to schedule a meeting and asks a person for the time first.
//!
//! The run ends with the call of `schedule_meeting` and an interrupt about it. The next run has the
//! answer in `resume`, sends the call's result and continues. An answer has the members of the
//! dojo's page (`chosen_time` and `chosen_label`, or `cancelled`), or `approved`.

use agui_server::{
    agent::emit::{TextMessage, ToolCallEvents},
    prelude::*,
    protocol::{JsonObject, ResumeEntry, ResumeStatus, ToolCallId},
};
use serde_json::{Value, json};

use crate::parts::Pace;

const TOOL: &str = "schedule_meeting";
/// An interrupt's id is this prefix and the call's id, so that the answer names the call.
const INTERRUPT_PREFIX: &str = "meeting_";

pub(crate) async fn run(input: RunAgentInput, out: Emitter, _: Pace) -> Result<(), AgentError> {
    if input.resume.is_empty() {
        return ask(&input, &out).await;
    }
    for answer in &input.resume {
        act(answer, &input, &out).await?;
    }
    Ok(())
}

async fn ask(input: &RunAgentInput, out: &Emitter) -> Result<(), AgentError> {
    let topic = input.last_user_text().unwrap_or_default();
    let attendee = attendee(&topic);
    let message = TextMessage::new();
    let call = ToolCallEvents::new(TOOL).within(&message);
    out.events([message.start(), message.delta("I need a time for this."), message.end()]).await?;
    out.events(call.whole(&json!({ "topic": topic, "attendee": attendee }))).await?;
    let question = Interrupt {
        id: format!("{INTERRUPT_PREFIX}{}", call.id()).into(),
        message: Some(format!("When should I schedule the meeting with {attendee}?")),
        tool_call_id: Some(call.id().clone()),
        response_schema: schema(),
        ..Interrupt::new("tool_call")
    };
    out.interrupt([question]).await
}

async fn act(answer: &ResumeEntry, input: &RunAgentInput, out: &Emitter) -> Result<(), AgentError> {
    let (result, text) = match chosen_time(answer) {
        Some(time) => {
            (format!("scheduled for {time}"), format!("Done: the meeting is scheduled for {time}."))
        }
        None => ("declined".to_owned(), "All right, I have not scheduled anything.".to_owned()),
    };
    let call = answer.interrupt_id.strip_prefix(INTERRUPT_PREFIX).map(ToolCallId::from);
    // CopilotKit also sends the answer as the result of the call, and a call may have one result only.
    if let Some(call) = call.filter(|call| !is_answered(call, input)) {
        out.event(ToolCallEvents::with_id(call, TOOL).result(result)).await?;
    }
    out.text(text).await
}

fn is_answered(call: &ToolCallId, input: &RunAgentInput) -> bool {
    input
        .messages
        .iter()
        .any(|message| matches!(message, Message::Tool(result) if result.tool_call_id == *call))
}

/// Returns the chosen time, or `None` if the person declined.
fn chosen_time(answer: &ResumeEntry) -> Option<&str> {
    let payload = answer.payload.as_ref().filter(|_| answer.status == ResumeStatus::Resolved)?;
    let flag = |name: &str| payload.get(name).and_then(Value::as_bool);
    if flag("cancelled") == Some(true) || flag("approved") == Some(false) {
        return None;
    }
    let time =
        ["chosen_label", "chosen_time"].into_iter().find_map(|name| payload.get(name)?.as_str());
    time.or_else(|| flag("approved").map(|_| "tomorrow at ten"))
}

/// Returns the schema of the answer: one of these members decides. The server refuses other answers.
fn schema() -> Option<JsonObject> {
    let schema = json!({
        "type": "object",
        "properties": {
            "approved": { "type": "boolean" },
            "chosen_time": { "type": "string" },
            "chosen_label": { "type": "string" },
            "cancelled": { "type": "boolean" },
        },
        "anyOf": [{ "required": ["approved"] }, { "required": ["chosen_time"] }, { "required": ["cancelled"] }],
    });
    schema.as_object().cloned()
}

/// Returns the name after "with" in the request.
fn attendee(request: &str) -> &str {
    let Some((_, rest)) = request.split_once(" with ") else { return "you" };
    let ends =
        [" to ", " next ", " on ", " at ", ".", "?"].into_iter().filter_map(|end| rest.find(end));
    rest[..ends.min().unwrap_or(rest.len())].trim()
}
