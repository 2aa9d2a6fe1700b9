//! `/interrupt`: the agent wants to schedule a meeting and asks a person for the time before it does.
//!
//! The run ends with the call of `schedule_meeting` and an interrupt about it. The next run brings the answer in
//! `resume`, gives the call its result and goes on. An answer is what the dojo's page sends (`chosen_time` and
//! `chosen_label`, or `cancelled`), or a plain `approved`.

use agui_server::{
    agent::{
        Agent, RunContext,
        emit::{TextMessage, ToolCallEvents, interrupt},
        events,
    },
    protocol::{Event, Interrupt, JsonObject, Message, ResumeEntry, ResumeStatus, RunAgentInput, ToolCallId},
};
use serde_json::{Value, json};

const TOOL: &str = "schedule_meeting";
/// Before the call's id in the interrupt's, so that the answer leads back to the call.
const ABOUT: &str = "meeting_";

pub(crate) fn agent() -> impl Agent {
    |input: RunAgentInput, cx: RunContext| {
        if input.resume.is_empty() {
            return events(ask(&input, &cx));
        }
        events(input.resume.iter().flat_map(|answer| act(answer, &input)).collect::<Vec<_>>())
    }
}

fn ask(input: &RunAgentInput, cx: &RunContext) -> Vec<Event> {
    let topic = input.last_user_text().unwrap_or_default();
    let attendee = attendee(&topic);
    let message = TextMessage::new();
    let call = ToolCallEvents::new(TOOL).within(&message);
    let question = Interrupt {
        id: format!("{ABOUT}{}", call.id()).into(),
        message: Some(format!("When should I schedule the meeting with {attendee}?")),
        tool_call_id: Some(call.id().clone()),
        response_schema: schema(),
        ..Interrupt::new("tool_call")
    };
    let mut events = vec![message.start(), message.delta("I need a time for this."), message.end()];
    events.extend(call.whole(&json!({ "topic": topic, "attendee": attendee })));
    events.push(interrupt(cx, vec![question]));
    events
}

fn act(answer: &ResumeEntry, input: &RunAgentInput) -> Vec<Event> {
    let (result, text) = match chosen_time(answer) {
        Some(time) => (format!("scheduled for {time}"), format!("Done: the meeting is scheduled for {time}.")),
        None => ("declined".to_owned(), "All right, I have not scheduled anything.".to_owned()),
    };
    let call = answer.interrupt_id.strip_prefix(ABOUT).map(ToolCallId::from);
    // CopilotKit puts the answer into the conversation as the call's result, too. A call has one result.
    let unanswered = call.filter(|call| !is_answered(call, input));
    let mut events: Vec<_> =
        unanswered.map(|call| ToolCallEvents::with_id(call, TOOL).result(result)).into_iter().collect();
    events.extend(TextMessage::whole(text));
    events
}

fn is_answered(call: &ToolCallId, input: &RunAgentInput) -> bool {
    input.messages.iter().any(|message| matches!(message, Message::Tool(result) if result.tool_call_id == *call))
}

/// The time, if the answer is a yes.
fn chosen_time(answer: &ResumeEntry) -> Option<&str> {
    let payload = answer.payload.as_ref().filter(|_| answer.status == ResumeStatus::Resolved)?;
    let flag = |name: &str| payload.get(name).and_then(Value::as_bool);
    if flag("cancelled") == Some(true) || flag("approved") == Some(false) {
        return None;
    }
    let time = ["chosen_label", "chosen_time"].into_iter().find_map(|name| payload.get(name)?.as_str());
    time.or_else(|| flag("approved").map(|_| "tomorrow at ten"))
}

/// Of the answer: one of these members decides. The server refuses anything else before the agent sees it.
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

/// Whoever the meeting is "with".
fn attendee(request: &str) -> &str {
    let Some((_, rest)) = request.split_once(" with ") else { return "you" };
    let ends = [" to ", " next ", " on ", " at ", ".", "?"].into_iter().filter_map(|end| rest.find(end));
    rest[..ends.min().unwrap_or(rest.len())].trim()
}
