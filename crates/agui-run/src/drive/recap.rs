//! Tells a run again as far as it has come: each message whole, and open items left open. A log that begins in the middle of a run
//! begins so.

use super::{guard::Guard, transcript::Transcript};
use agui_protocol::{
    Event, Message, MessageContent, SubagentRunId,
    event::{
        ActivitySnapshot, EncryptedValueSubtype, MessagesSnapshot, ReasoningEncryptedValue,
        ReasoningMessageContent, ReasoningMessageEnd, ReasoningMessageStart, StateSnapshot,
        TextMessageContent, TextMessageEnd, TextMessageRole, TextMessageStart, ToolCallArgs,
        ToolCallEnd, ToolCallResult, ToolCallStart,
    },
};

/// Returns the events of the first `marked` new messages, and those of the others.
pub(crate) fn recap(transcript: &Transcript, guard: &Guard, marked: usize) -> [Vec<Event>; 2] {
    let mut events = guard.open_scopes();
    if transcript.state().as_object().is_none_or(|state| !state.is_empty()) {
        events.push(StateSnapshot::new(transcript.state().clone()).into());
    }
    let is_told = |message: &&Message| !is_open(message, guard);
    // A run that changed earlier messages, or added parts that no event can tell, is told with the whole conversation.
    if transcript.has_changed_base() || !transcript.new_messages().all(has_events) {
        let messages = transcript.messages();
        let closed = messages.iter().filter(is_told).cloned().collect::<Vec<_>>();
        events.push(MessagesSnapshot::new(closed).into());
        let mut rest = Vec::new();
        let open = messages.iter().filter(|message| is_open(message, guard));
        open.for_each(|message| tell(message, guard, &mut rest));
        rest.extend(guard.ended_subagents());
        return [events, rest];
    }
    let mut rest = Vec::new();
    for (position, message) in transcript.new_messages().enumerate() {
        tell(message, guard, if position < marked { &mut events } else { &mut rest });
    }
    rest.extend(guard.ended_subagents());
    [events, rest]
}

fn is_open(message: &Message, guard: &Guard) -> bool {
    guard.has_open_message(message.id())
        || message.tool_calls().iter().any(|call| guard.has_open_call(&call.id))
}

fn has_events(message: &Message) -> bool {
    !matches!(message, Message::User(user) if matches!(user.content, MessageContent::Parts(_)))
}

/// Adds the events of a message, without the end of an open one.
fn tell(message: &Message, guard: &Guard, out: &mut Vec<Event>) {
    let owner = message.subagent_run_id().cloned();
    let first = out.len();
    match message {
        Message::Assistant(assistant) => {
            if let Some(text) = &assistant.content {
                tell_text(message, TextMessageRole::Assistant, text, guard, out);
            }
            tell_calls(message, guard, out);
        }
        Message::User(user) => match &user.content {
            MessageContent::Text(text) => {
                tell_text(message, TextMessageRole::User, text, guard, out);
            }
            MessageContent::Parts(_) => {}
        },
        Message::System(system) => {
            tell_text(message, TextMessageRole::System, &system.content, guard, out);
        }
        Message::Developer(developer) => {
            tell_text(message, TextMessageRole::Developer, &developer.content, guard, out);
        }
        Message::Reasoning(reasoning) => {
            let id = &reasoning.id;
            out.push(ReasoningMessageStart::new(id.clone()).into());
            if !reasoning.content.is_empty() {
                let text = reasoning.content.clone();
                out.push(ReasoningMessageContent::new(id.clone(), text).into());
            }
            if !guard.has_open_message(id) {
                out.push(ReasoningMessageEnd::new(id.clone()).into());
            }
        }
        Message::Tool(result) => {
            let (id, call) = (result.id.clone(), result.tool_call_id.clone());
            out.push(ToolCallResult::new(id, call, result.content.clone()).into());
        }
        Message::Activity(activity) => {
            let (id, content) = (activity.id.clone(), activity.content.clone());
            out.push(ActivitySnapshot::new(id, activity.activity_type.clone(), content).into());
        }
    }
    if let Some(first) = out.get_mut(first) {
        first.base_mut().set_metadata(message.metadata().cloned());
    }
    attribute(&mut out[first..], owner.as_ref());
    let (value, kind) = message.encrypted_value();
    let id = message.id().to_string();
    tell_encrypted(EncryptedValueSubtype::Message, id, value, kind, owner, out);
}

fn tell_text(
    message: &Message,
    role: TextMessageRole,
    text: &str,
    guard: &Guard,
    out: &mut Vec<Event>,
) {
    let id = message.id();
    let mut start = TextMessageStart::new(id.clone());
    start.role = Some(role);
    start.name = message.name().map(str::to_owned);
    out.push(start.into());
    if !text.is_empty() {
        out.push(TextMessageContent::new(id.clone(), text).into());
    }
    if !guard.has_open_message(id) {
        out.push(TextMessageEnd::new(id.clone()).into());
    }
}

fn tell_calls(message: &Message, guard: &Guard, out: &mut Vec<Event>) {
    for call in message.tool_calls() {
        let first = out.len();
        let mut start = ToolCallStart::new(call.id.clone(), call.function.name.clone());
        start.parent_message_id = Some(message.id().clone());
        start.base.set_metadata(call.metadata.clone());
        out.push(start.into());
        if !call.function.arguments.is_empty() {
            out.push(ToolCallArgs::new(call.id.clone(), call.function.arguments.clone()).into());
        }
        if !guard.has_open_call(&call.id) {
            out.push(ToolCallEnd::new(call.id.clone()).into());
        }
        let owner = guard.owner_of_call(&call.id);
        attribute(&mut out[first..], owner.as_ref());
        let (value, kind) = (call.encrypted_value.as_deref(), call.encrypted_value_type.as_deref());
        let id = call.id.to_string();
        tell_encrypted(EncryptedValueSubtype::ToolCall, id, value, kind, owner, out);
    }
}

fn tell_encrypted(
    subtype: EncryptedValueSubtype,
    id: String,
    value: Option<&str>,
    kind: Option<&str>,
    owner: Option<SubagentRunId>,
    out: &mut Vec<Event>,
) {
    let Some(value) = value else { return };
    let mut event = ReasoningEncryptedValue::new(subtype, id, value);
    event.encrypted_value_type = kind.map(str::to_owned);
    out.push(Event::from(event).attributed_to(owner));
}

fn attribute(events: &mut [Event], owner: Option<&SubagentRunId>) {
    let Some(owner) = owner else { return };
    for event in events {
        // A call can have another owner than its message.
        if event.subagent_run_id().is_none() {
            *event = event.clone().attributed_to(Some(owner.clone()));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use agui_protocol::RunAgentInput;

    /// A run that has nearly everything: text, calls, results, reasoning, activities, subagents, steps, a state.
    fn run() -> Vec<Event> {
        let events: Vec<Value> = vec![
            json!({ "type": "STEP_STARTED", "stepName": "think" }),
            json!({ "type": "STATE_SNAPSHOT", "snapshot": { "a": 1 } }),
            json!({ "type": "REASONING_START", "messageId": "r" }),
            json!({ "type": "REASONING_MESSAGE_START", "messageId": "r", "role": "reasoning" }),
            json!({ "type": "REASONING_MESSAGE_CONTENT", "messageId": "r", "delta": "Hm" }),
            json!({ "type": "REASONING_ENCRYPTED_VALUE", "subtype": "message", "entityId": "r", "encryptedValue": "x" }),
            json!({ "type": "REASONING_MESSAGE_END", "messageId": "r" }),
            json!({ "type": "REASONING_END", "messageId": "r" }),
            json!({ "type": "TEXT_MESSAGE_START", "messageId": "m", "role": "assistant", "metadata": { "k": 1 } }),
            json!({ "type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "I " }),
            json!({ "type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "pay" }),
            json!({ "type": "TEXT_MESSAGE_END", "messageId": "m" }),
            json!({ "type": "TOOL_CALL_START", "toolCallId": "c", "toolCallName": "pay", "parentMessageId": "m" }),
            json!({ "type": "TOOL_CALL_ARGS", "toolCallId": "c", "delta": "{\"to\":" }),
            json!({ "type": "TOOL_CALL_ARGS", "toolCallId": "c", "delta": "\"a\"}" }),
            json!({ "type": "TOOL_CALL_END", "toolCallId": "c" }),
            json!({ "type": "SUBAGENT_STARTED", "subagentRunId": "s", "name": "clerk" }),
            json!({ "type": "TEXT_MESSAGE_START", "messageId": "n", "role": "assistant", "subagentRunId": "s" }),
            json!({ "type": "TEXT_MESSAGE_CONTENT", "messageId": "n", "delta": "Done", "subagentRunId": "s" }),
            json!({ "type": "TEXT_MESSAGE_END", "messageId": "n", "subagentRunId": "s" }),
            json!({ "type": "TOOL_CALL_RESULT", "messageId": "t", "toolCallId": "c", "content": "paid" }),
            json!({ "type": "ACTIVITY_SNAPSHOT", "messageId": "v", "activityType": "card", "content": { "sum": 2 } }),
            json!({ "type": "ACTIVITY_DELTA", "messageId": "v", "activityType": "card", "patch": [{ "op": "replace", "path": "/sum", "value": 3 }] }),
            json!({ "type": "STATE_DELTA", "delta": [{ "op": "replace", "path": "/a", "value": 2 }] }),
            json!({ "type": "SUBAGENT_FINISHED", "subagentRunId": "s" }),
            json!({ "type": "TOOL_CALL_START", "toolCallId": "d", "toolCallName": "look" }),
            json!({ "type": "STEP_FINISHED", "stepName": "think" }),
        ];
        events.into_iter().map(|event| serde_json::from_value(event).unwrap()).collect()
    }

    fn start() -> (Transcript, Guard) {
        let input = RunAgentInput::new("t", "r", vec![Message::user("u", "Pay")]);
        (Transcript::from_input(&input), Guard::new(&input))
    }

    /// Wherever a run is told again, who reads that and the rest has what who read everything has.
    #[test]
    fn a_run_that_is_told_again_is_legal_and_ends_with_the_same_messages_and_state() {
        let events = run();
        for told in 0..=events.len() {
            let (mut all, mut guard) = start();
            let pass = |event: &Event, guard: &mut Guard, all: &mut Transcript| {
                guard.admit(event.clone(), &mut |event: &Event| all.apply(event)).unwrap();
            };
            events[..told].iter().for_each(|event| pass(event, &mut guard, &mut all));
            for marked in 0..=all.new_messages().count() {
                let (mut late, mut late_guard) = start();
                let again = recap(&all, &guard, marked);
                for event in again.iter().flatten().chain(&events[told..]) {
                    pass(event, &mut late_guard, &mut late);
                }
                let mut whole = all.clone();
                events[told..].iter().for_each(|event| whole.apply(event));
                assert_eq!(late.messages(), whole.messages(), "told after {told}, marked {marked}");
                assert_eq!(late.state(), whole.state(), "{told}");
            }
        }
    }

    #[test]
    fn a_run_that_replaced_earlier_messages_is_told_with_all_of_them() {
        let (mut transcript, mut guard) = start();
        let snapshot = json!({ "type": "MESSAGES_SNAPSHOT", "messages": [{ "id": "u", "role": "user", "content": "Pay 5" }] });
        let open = json!({ "type": "TEXT_MESSAGE_START", "messageId": "m", "role": "assistant" });
        for event in [snapshot, open] {
            let event = serde_json::from_value(event).unwrap();
            guard.admit(event, &mut |event: &Event| transcript.apply(event)).unwrap();
        }
        let (mut late, mut late_guard) = start();
        for event in recap(&transcript, &guard, 0).into_iter().flatten() {
            late_guard.admit(event, &mut |event: &Event| late.apply(event)).unwrap();
        }
        assert_eq!(late.messages(), transcript.messages());
        assert!(late_guard.has_open_message(&"m".into()));
    }
}
