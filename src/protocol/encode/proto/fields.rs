//! The fields of each event. The number of `subagentRunId` differs from event to event.

use super::{payload, writer::Writer};
use crate::protocol::{
    Event, JsonPatch, PatchKind, TokenUsage,
    event::{EncryptedValueSubtype, RunOutcome, SubagentOutcome, TextMessageRole},
};

/// Writes the fields of an event. A new event needs an arm in the function of its family.
pub(super) fn fields(event: &Event, w: &mut Writer<'_>) {
    text_fields(event, event.subagent_run_id().map(AsRef::as_ref), w);
}

fn text_fields(event: &Event, subagent: Option<&str>, w: &mut Writer<'_>) {
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
        _ => tool_fields(event, subagent, w),
    }
}

fn tool_fields(event: &Event, subagent: Option<&str>, w: &mut Writer<'_>) {
    match event {
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
        _ => state_fields(event, subagent, w),
    }
}

fn state_fields(event: &Event, subagent: Option<&str>, w: &mut Writer<'_>) {
    match event {
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
        _ => run_fields(event, subagent, w),
    }
}

fn run_fields(event: &Event, subagent: Option<&str>, w: &mut Writer<'_>) {
    match event {
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
        _ => reasoning_fields(event, subagent, w),
    }
}

fn reasoning_fields(event: &Event, subagent: Option<&str>, w: &mut Writer<'_>) {
    match event {
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
        _ => subagent_fields(event, w),
    }
}

fn subagent_fields(event: &Event, w: &mut Writer<'_>) {
    match event {
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
        _ => {}
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
