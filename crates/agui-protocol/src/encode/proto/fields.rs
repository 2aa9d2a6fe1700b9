//! The fields of each event. The number of `subagentRunId` differs from event to event.

use super::{payload, writer::Writer};
use crate::{
    Event, PatchKind, PatchOperation, Role, TokenUsage,
    event::{
        EncryptedValueSubtype, ReasoningEnd, ReasoningMessageEnd, ReasoningStart, RunOutcome,
        StepFinished, StepStarted, SubagentOutcome,
    },
};

/// Writes the fields of an event. A new event needs an arm in the function of its family.
pub(super) fn fields<'w>(event: &Event, w: &'w mut Writer) -> &'w mut Writer {
    let subagent = &event.subagent_run_id();
    match event {
        Event::TextMessageStart(e) => {
            let role = e.role.map(|role| Role::from(role).as_str());
            w.text(2, &e.message_id)
                .optional_text(3, &role)
                .optional_text(4, &e.name)
                .optional_text(5, subagent)
        }
        Event::TextMessageContent(e) => {
            w.text(2, &e.message_id).text(3, &e.delta).optional_text(4, subagent)
        }
        Event::TextMessageEnd(e) => w.text(2, &e.message_id).optional_text(3, subagent),
        Event::TextMessageChunk(e) => {
            let role = e.role.map(|role| Role::from(role).as_str());
            w.optional_text(2, &e.message_id).optional_text(3, &role).optional_text(4, &e.delta);
            w.optional_text(5, &e.name).optional_text(6, subagent)
        }
        Event::ToolCallStart(e) => {
            w.text(2, &e.tool_call_id).text(3, &e.tool_call_name);
            w.optional_text(4, &e.parent_message_id).optional_text(5, subagent)
        }
        Event::ToolCallArgs(e) => {
            w.text(2, &e.tool_call_id).text(3, &e.delta).optional_text(4, subagent)
        }
        Event::ToolCallEnd(e) => w.text(2, &e.tool_call_id).optional_text(3, subagent),
        Event::ToolCallChunk(e) => {
            w.optional_text(2, &e.tool_call_id).optional_text(3, &e.tool_call_name);
            w.optional_text(4, &e.parent_message_id)
                .optional_text(5, &e.delta)
                .optional_text(6, subagent)
        }
        Event::ToolCallResult(e) => {
            w.optional_text(2, subagent).text(3, &e.message_id).text(4, &e.tool_call_id);
            payload::content(5, 7, &e.content, w, |w| w.optional_text(6, &e.role.map(|_| "tool")))
        }
        _ => state_fields(event, w),
    }
}

fn state_fields<'w>(event: &Event, w: &'w mut Writer) -> &'w mut Writer {
    let subagent = &event.subagent_run_id();
    match event {
        Event::StateSnapshot(e) => w.value(2, &e.snapshot).optional_text(3, subagent),
        Event::StateDelta(e) => w.messages(2, &e.delta, operation).optional_text(3, subagent),
        Event::MessagesSnapshot(e) => w.messages(2, &e.messages, payload::message),
        Event::ActivitySnapshot(e) => {
            w.optional_text(2, subagent).text(3, &e.message_id).text(4, &e.activity_type);
            w.object(5, Some(&e.content)).optional_flag(6, e.replace)
        }
        Event::ActivityDelta(e) => {
            w.optional_text(2, subagent).text(3, &e.message_id).text(4, &e.activity_type);
            w.messages(5, &e.patch, operation)
        }
        _ => run_fields(event, w),
    }
}

fn run_fields<'w>(event: &Event, w: &'w mut Writer) -> &'w mut Writer {
    let subagent = &event.subagent_run_id();
    match event {
        Event::RunStarted(e) => {
            w.text(2, &e.thread_id).text(3, &e.run_id).optional_text(4, &e.parent_run_id);
            w.messages(5, &e.input, |input, w| payload::input(input, w))
                .optional_text(6, &e.protocol_version)
        }
        Event::RunFinished(e) => {
            let (outcome, interrupts, pending): (_, &[_], &[_]) = match &e.outcome {
                None => (None, &[], &[]),
                Some(RunOutcome::Success { pending_tool_call_ids }) => {
                    (Some("success"), &[], pending_tool_call_ids)
                }
                Some(RunOutcome::Interrupt { interrupts }) => (Some("interrupt"), interrupts, &[]),
                Some(RunOutcome::Cancelled) => (Some("cancelled"), &[], &[]),
            };
            w.text(2, &e.thread_id)
                .text(3, &e.run_id)
                .optional_value(4, e.result.as_ref())
                .optional_text(5, &outcome);
            w.messages(6, interrupts, payload::interrupt)
                .messages(7, &e.usage, usage)
                .texts(8, pending)
        }
        Event::RunError(e) => {
            w.optional_text(2, &e.code).text(3, &e.message).messages(4, &e.usage, usage)
        }
        Event::StepStarted(StepStarted { step_name, .. })
        | Event::StepFinished(StepFinished { step_name, .. }) => {
            w.text(2, step_name).optional_text(3, subagent)
        }
        Event::Raw(e) => {
            w.value(2, &e.event).optional_text(3, &e.source).optional_text(4, subagent)
        }
        Event::Custom(e) => w.text(2, &e.name).value(3, &e.value).optional_text(4, subagent),
        Event::SubagentStarted(e) => {
            w.text(2, &e.subagent_run_id).text(3, &e.name).optional_text(4, &e.description);
            w.optional_text(5, &e.parent_subagent_run_id).optional_text(6, &e.parent_tool_call_id);
            w.optional_text(7, &e.parent_message_id)
        }
        Event::SubagentFinished(e) => {
            let (outcome, interrupts): (_, &[_]) = match &e.outcome {
                None => (None, &[]),
                Some(SubagentOutcome::Success) => (Some("success"), &[]),
                Some(SubagentOutcome::Suspended { interrupt_ids }) => {
                    (Some("suspended"), interrupt_ids)
                }
            };
            w.text(2, &e.subagent_run_id).optional_value(3, e.result.as_ref());
            w.optional_text(4, &outcome).texts(5, interrupts)
        }
        Event::SubagentError(e) => {
            w.text(2, &e.subagent_run_id).text(3, &e.message).optional_text(4, &e.code)
        }
        _ => reasoning_fields(event, w.optional_text(2, subagent)),
    }
}

/// All these events have the subagent first.
fn reasoning_fields<'w>(event: &Event, w: &'w mut Writer) -> &'w mut Writer {
    match event {
        Event::ReasoningStart(ReasoningStart { message_id, .. })
        | Event::ReasoningMessageEnd(ReasoningMessageEnd { message_id, .. })
        | Event::ReasoningEnd(ReasoningEnd { message_id, .. }) => w.text(3, message_id),
        Event::ReasoningMessageStart(e) => w.text(3, &e.message_id).text(4, "reasoning"),
        Event::ReasoningMessageContent(e) => w.text(3, &e.message_id).text(4, &e.delta),
        Event::ReasoningMessageChunk(e) => {
            w.optional_text(3, &e.message_id).optional_text(4, &e.delta)
        }
        Event::ReasoningEncryptedValue(e) => {
            let subtype = match e.subtype {
                EncryptedValueSubtype::ToolCall => "tool-call",
                EncryptedValueSubtype::Message => "message",
            };
            w.text(3, subtype).text(4, &e.entity_id).text(5, &e.encrypted_value);
            w.optional_text(6, &e.encrypted_value_type)
        }
        _ => w,
    }
}

/// Every operation has fields for `from` and `value`, also for leftover ones. Members with other names have no field.
fn operation<'w>(operation: &PatchOperation, w: &'w mut Writer) -> &'w mut Writer {
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
    let from = from.or_else(|| leftover("from").and_then(|from| from.as_str()));
    w.number(1, number).text(2, path).optional_text(3, &from);
    match value.or_else(|| leftover("value")) {
        Some(value) => w.value(4, value),
        None => w,
    }
}

fn usage<'w>(usage: &TokenUsage, w: &'w mut Writer) -> &'w mut Writer {
    w.optional_text(1, &usage.provider).optional_text(2, &usage.model);
    let counts = [
        usage.input_tokens,
        usage.output_tokens,
        usage.total_tokens,
        usage.reasoning_tokens,
        usage.cached_input_tokens,
        usage.cache_write_input_tokens,
    ];
    for (field, count) in (3..).zip(counts) {
        w.optional_integer(field, count.map(|count| i64::try_from(count).unwrap_or(i64::MAX)));
    }
    w
}
