//! AG-UI's protobuf frames: the length as 4 big-endian bytes, then one event as protobuf.
//!
//! The fields are written by hand. Generated message types would need a copy of every text, and their maps lose the
//! order of an object's members, which the reference encoder keeps. The field numbers are those of the protocol's
//! `.proto` files; `tests/js/protobuf.test.mjs` compares the bytes of every event with the reference encoder's.

mod payload;
mod writer;

use self::writer::Writer;
use crate::protocol::{
    Event, EventType, JsonPatch, PatchKind, TokenUsage,
    event::{BaseEvent, EncryptedValueSubtype, RunOutcome, SubagentOutcome, TextMessageRole},
};

/// Writes events as protobuf frames.
#[derive(Debug, Default)]
pub struct Proto;

impl Proto {
    /// Appends an event's frame.
    pub fn event(&mut self, event: &Event, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&[0; 4]);
        encode(event, &mut Writer::new(out));
        match u32::try_from(out.len() - start - 4) {
            Ok(length) => out[start..start + 4].copy_from_slice(&length.to_be_bytes()),
            Err(_) => {
                out.truncate(start);
                tracing::error!(
                    event = event.event_type().as_str(),
                    "left out an event that is too large for a protobuf frame"
                );
            }
        }
    }
}

/// Returns the field number of an event in the envelope, and its number in the type enumeration.
fn numbers(event_type: EventType) -> (u32, u64) {
    match event_type {
        EventType::TextMessageStart => (1, 0),
        EventType::TextMessageContent => (2, 1),
        EventType::TextMessageEnd => (3, 2),
        EventType::ToolCallStart => (4, 3),
        EventType::ToolCallArgs => (5, 4),
        EventType::ToolCallEnd => (6, 5),
        EventType::StateSnapshot => (7, 6),
        EventType::StateDelta => (8, 7),
        EventType::MessagesSnapshot => (9, 8),
        EventType::Raw => (10, 9),
        EventType::Custom => (11, 10),
        EventType::RunStarted => (12, 11),
        EventType::RunFinished => (13, 12),
        EventType::RunError => (14, 13),
        EventType::StepStarted => (15, 14),
        EventType::StepFinished => (16, 15),
        EventType::TextMessageChunk => (17, 19),
        EventType::ToolCallChunk => (18, 20),
        EventType::SubagentStarted => (19, 16),
        EventType::SubagentFinished => (20, 17),
        EventType::SubagentError => (21, 18),
        EventType::ToolCallResult => (22, 21),
        EventType::ActivitySnapshot => (23, 22),
        EventType::ActivityDelta => (24, 23),
        EventType::ReasoningStart => (25, 24),
        EventType::ReasoningMessageStart => (26, 25),
        EventType::ReasoningMessageContent => (27, 26),
        EventType::ReasoningMessageEnd => (28, 27),
        EventType::ReasoningMessageChunk => (29, 28),
        EventType::ReasoningEnd => (30, 29),
        EventType::ReasoningEncryptedValue => (31, 30),
    }
}

fn encode(event: &Event, w: &mut Writer<'_>) {
    let event_type = event.event_type();
    w.message(numbers(event_type).0, |w| {
        w.message(1, |w| base_fields(event_type, event.base(), w));
        fields(event, w);
    });
}

fn base_fields(event_type: EventType, base: &BaseEvent, w: &mut Writer<'_>) {
    w.number(1, numbers(event_type).1);
    w.optional_integer(2, base.timestamp());
    if let Some(raw) = base.raw_event() {
        w.message(3, |w| w.value(raw));
    }
    if let Some(metadata) = base.metadata() {
        w.message(4, |w| w.object(metadata));
    }
}

/// The number of `subagentRunId` differs from event to event.
fn fields(event: &Event, w: &mut Writer<'_>) {
    let subagent = event.subagent_run_id().map(AsRef::as_ref);
    match event {
        Event::TextMessageStart(e) => {
            w.text(2, &e.message_id);
            w.optional_text(3, e.role.map(role));
            w.optional_text(4, e.name.as_deref());
            w.optional_text(5, subagent);
        }
        Event::TextMessageContent(e) => {
            w.text(2, &e.message_id);
            w.text(3, &e.delta);
            w.optional_text(4, subagent);
        }
        Event::TextMessageEnd(e) => {
            w.text(2, &e.message_id);
            w.optional_text(3, subagent);
        }
        Event::TextMessageChunk(e) => {
            w.optional_text(2, e.message_id.as_deref());
            w.optional_text(3, e.role.map(role));
            w.optional_text(4, e.delta.as_deref());
            w.optional_text(5, e.name.as_deref());
            w.optional_text(6, subagent);
        }
        Event::ToolCallStart(e) => {
            w.text(2, &e.tool_call_id);
            w.text(3, &e.tool_call_name);
            w.optional_text(4, e.parent_message_id.as_deref());
            w.optional_text(5, subagent);
        }
        Event::ToolCallArgs(e) => {
            w.text(2, &e.tool_call_id);
            w.text(3, &e.delta);
            w.optional_text(4, subagent);
        }
        Event::ToolCallEnd(e) => {
            w.text(2, &e.tool_call_id);
            w.optional_text(3, subagent);
        }
        Event::ToolCallChunk(e) => {
            w.optional_text(2, e.tool_call_id.as_deref());
            w.optional_text(3, e.tool_call_name.as_deref());
            w.optional_text(4, e.parent_message_id.as_deref());
            w.optional_text(5, e.delta.as_deref());
            w.optional_text(6, subagent);
        }
        Event::ToolCallResult(e) => {
            w.optional_text(2, subagent);
            w.text(3, &e.message_id);
            w.text(4, &e.tool_call_id);
            payload::content(5, 7, &e.content, w, |w| w.optional_text(6, e.role.map(|_| "tool")));
        }
        Event::StateSnapshot(e) => {
            w.message(2, |w| w.value(&e.snapshot));
            w.optional_text(3, subagent);
        }
        Event::StateDelta(e) => {
            patch(2, &e.delta, w);
            w.optional_text(3, subagent);
        }
        Event::MessagesSnapshot(e) => {
            e.messages.iter().for_each(|message| w.message(2, |w| payload::message(message, w)));
        }
        Event::ActivitySnapshot(e) => {
            w.optional_text(2, subagent);
            w.text(3, &e.message_id);
            w.text(4, &e.activity_type);
            w.message(5, |w| w.object(&e.content));
            w.optional_flag(6, e.replace);
        }
        Event::ActivityDelta(e) => {
            w.optional_text(2, subagent);
            w.text(3, &e.message_id);
            w.text(4, &e.activity_type);
            patch(5, &e.patch, w);
        }
        Event::Raw(e) => {
            w.message(2, |w| w.value(&e.event));
            w.optional_text(3, e.source.as_deref());
            w.optional_text(4, subagent);
        }
        Event::Custom(e) => {
            w.text(2, &e.name);
            w.message(3, |w| w.value(&e.value));
            w.optional_text(4, subagent);
        }
        Event::RunStarted(e) => {
            w.text(2, &e.thread_id);
            w.text(3, &e.run_id);
            w.optional_text(4, e.parent_run_id.as_deref());
            if let Some(input) = &e.input {
                w.message(5, |w| payload::input(input, w));
            }
            w.optional_text(6, e.protocol_version.as_deref());
        }
        Event::RunFinished(e) => {
            w.text(2, &e.thread_id);
            w.text(3, &e.run_id);
            w.optional_value(4, e.result.as_ref());
            let (mut interrupts, mut pending) = (&[][..], &[][..]);
            match &e.outcome {
                None => {}
                Some(RunOutcome::Success { pending_tool_call_ids }) => {
                    w.text(5, "success");
                    pending = pending_tool_call_ids;
                }
                Some(RunOutcome::Interrupt { interrupts: asked }) => {
                    w.text(5, "interrupt");
                    interrupts = asked;
                }
                Some(RunOutcome::Cancelled) => w.text(5, "cancelled"),
            }
            interrupts.iter().for_each(|interrupt| w.message(6, |w| payload::interrupt(interrupt, w)));
            usage(7, &e.usage, w);
            pending.iter().for_each(|id| w.repeated_text(8, id));
        }
        Event::RunError(e) => {
            w.optional_text(2, e.code.as_deref());
            w.text(3, &e.message);
            usage(4, &e.usage, w);
        }
        Event::StepStarted(e) => {
            w.text(2, &e.step_name);
            w.optional_text(3, subagent);
        }
        Event::StepFinished(e) => {
            w.text(2, &e.step_name);
            w.optional_text(3, subagent);
        }
        Event::ReasoningStart(e) => {
            w.optional_text(2, subagent);
            w.text(3, &e.message_id);
        }
        Event::ReasoningMessageStart(e) => {
            w.optional_text(2, subagent);
            w.text(3, &e.message_id);
            w.text(4, "reasoning");
        }
        Event::ReasoningMessageContent(e) => {
            w.optional_text(2, subagent);
            w.text(3, &e.message_id);
            w.text(4, &e.delta);
        }
        Event::ReasoningMessageEnd(e) => {
            w.optional_text(2, subagent);
            w.text(3, &e.message_id);
        }
        Event::ReasoningMessageChunk(e) => {
            w.optional_text(2, subagent);
            w.optional_text(3, e.message_id.as_deref());
            w.optional_text(4, e.delta.as_deref());
        }
        Event::ReasoningEnd(e) => {
            w.optional_text(2, subagent);
            w.text(3, &e.message_id);
        }
        Event::ReasoningEncryptedValue(e) => {
            w.optional_text(2, subagent);
            w.text(
                3,
                match e.subtype {
                    EncryptedValueSubtype::ToolCall => "tool-call",
                    EncryptedValueSubtype::Message => "message",
                },
            );
            w.text(4, &e.entity_id);
            w.text(5, &e.encrypted_value);
            w.optional_text(6, e.encrypted_value_type.as_deref());
        }
        Event::SubagentStarted(e) => {
            w.text(2, &e.subagent_run_id);
            w.text(3, &e.name);
            w.optional_text(4, e.description.as_deref());
            w.optional_text(5, e.parent_subagent_run_id.as_deref());
            w.optional_text(6, e.parent_tool_call_id.as_deref());
            w.optional_text(7, e.parent_message_id.as_deref());
        }
        Event::SubagentFinished(e) => {
            w.text(2, &e.subagent_run_id);
            w.optional_value(3, e.result.as_ref());
            match &e.outcome {
                None => {}
                Some(SubagentOutcome::Success) => w.text(4, "success"),
                Some(SubagentOutcome::Suspended { interrupt_ids }) => {
                    w.text(4, "suspended");
                    interrupt_ids.iter().for_each(|id| w.repeated_text(5, id));
                }
            }
        }
        Event::SubagentError(e) => {
            w.text(2, &e.subagent_run_id);
            w.text(3, &e.message);
            w.optional_text(4, e.code.as_deref());
        }
    }
}

fn role(role: TextMessageRole) -> &'static str {
    crate::protocol::Role::from(role).as_str()
}

/// Every operation has fields for `from` and `value`, also for leftover ones. Members with other names have no field.
fn patch(field: u32, patch: &JsonPatch, w: &mut Writer<'_>) {
    for operation in patch {
        let leftover = |name: &str| operation.others.as_ref().and_then(|others| others.get(name));
        let (path, from) = operation.pointers();
        let (number, value) = match &operation.kind {
            PatchKind::Add { value, .. } => (0, Some(value)),
            PatchKind::Remove { .. } => (1, None),
            PatchKind::Replace { value, .. } => (2, Some(value)),
            PatchKind::Move { .. } => (3, None),
            PatchKind::Copy { .. } => (4, None),
            PatchKind::Test { value, .. } => (5, Some(value)),
        };
        w.message(field, |w| {
            w.number(1, number);
            w.text(2, path);
            w.optional_text(3, from.or_else(|| leftover("from").and_then(|from| from.as_str())));
            if let Some(value) = value.or_else(|| leftover("value")) {
                w.message(4, |w| w.value(value));
            }
        });
    }
}

fn usage(field: u32, usage: &[TokenUsage], w: &mut Writer<'_>) {
    for entry in usage {
        w.message(field, |w| {
            w.optional_text(1, entry.provider.as_deref());
            w.optional_text(2, entry.model.as_deref());
            let counts = [
                entry.input_tokens,
                entry.output_tokens,
                entry.total_tokens,
                entry.reasoning_tokens,
                entry.cached_input_tokens,
                entry.cache_write_input_tokens,
            ];
            for (field, count) in (3..).zip(counts) {
                w.optional_integer(field, count.map(|count| i64::try_from(count).unwrap_or(i64::MAX)));
            }
        });
    }
}

/// `tests/js/protobuf.test.mjs` compares with an encoder of AG-UI 1.0. These are the fields that 1.1 adds.
/// Source of the numbers: `spec/1.1/proto-freeze.txt` of AG-UI.
#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn frame(event: serde_json::Value) -> Vec<u8> {
        let mut frame = Vec::new();
        Proto.event(&serde_json::from_value(event).unwrap(), &mut frame);
        frame.split_off(4)
    }

    #[test]
    fn the_types_of_encrypted_values_have_the_numbers_of_the_specification() {
        let sealed = json!({
            "type": "REASONING_ENCRYPTED_VALUE", "subtype": "message", "entityId": "m", "encryptedValue": "x",
            "encryptedValueType": "a.b",
        });
        let body = b"\x0a\x02\x08\x1e\x1a\x07message\x22\x01m\x2a\x01x\x32\x03a.b";
        assert_eq!(frame(sealed), [&[0xfa, 0x01, body.len() as u8], &body[..]].concat());

        let call = json!({
            "id": "c", "type": "function", "function": { "name": "f", "arguments": "" }, "encryptedValue": "y",
            "encryptedValueType": "c.d",
        });
        let message = json!({
            "id": "m", "role": "assistant", "toolCalls": [call], "encryptedValue": "x", "encryptedValueType": "a.b",
        });
        let frame = frame(json!({ "type": "MESSAGES_SNAPSHOT", "messages": [message] }));
        let has = |bytes: &[u8]| frame.windows(bytes.len()).any(|window| window == bytes);
        assert!(has(b"\x2a\x01y\x32\x03c.d") && has(b"\x5a\x01x\x72\x03a.b"), "{frame:?}");
    }

    #[test]
    fn leftover_members_of_patch_operations_are_sent() {
        let remove = json!({ "op": "remove", "path": "/a", "value": "x", "from": "/b", "acme": 1 });
        let frame = frame(json!({ "type": "STATE_DELTA", "delta": [remove] }));
        let has = |bytes: &[u8]| frame.windows(bytes.len()).any(|window| window == bytes);
        assert!(has(b"\x08\x01\x12\x02/a\x1a\x02/b\x22\x03\x1a\x01x"), "{frame:?}");
    }
}
