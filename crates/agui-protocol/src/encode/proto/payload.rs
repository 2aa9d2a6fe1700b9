//! The payloads of events: messages, content parts, interrupts, the run's input.

use super::writer::Writer;
use crate::{
    ContentPart, Context, Interrupt, MediaPart, Message, MessageContent, PartSource, ResumeEntry,
    ResumeStatus, RunAgentInput, ToolCall, ToolDefinition,
};

/// `between` writes the fields with numbers between the text's and the parts'.
pub(super) fn content<'w>(
    text_field: u32,
    parts_field: u32,
    content: &MessageContent,
    w: &'w mut Writer,
    between: impl FnOnce(&mut Writer) -> &mut Writer,
) -> &'w mut Writer {
    match content {
        MessageContent::Text(text) => between(w.present_text(text_field, text)),
        MessageContent::Parts(parts) => between(w).messages(parts_field, parts, part),
    }
}

fn part<'w>(part: &ContentPart, w: &'w mut Writer) -> &'w mut Writer {
    let (field, media) = match part {
        ContentPart::Text(text) => {
            return w.message(1, |w| {
                w.text(1, &text.text)
                    .optional_text(2, &text.id)
                    .optional_value(3, text.metadata.as_ref())
            });
        }
        ContentPart::Image(media) => (2, media),
        ContentPart::Audio(media) => (3, media),
        ContentPart::Video(media) => (4, media),
        ContentPart::Document(media) => (5, media),
    };
    w.message(field, |w| self::media(media, w))
}

fn media<'w>(media: &MediaPart, w: &'w mut Writer) -> &'w mut Writer {
    w.message(1, |w| match &media.source {
        PartSource::Data { value, mime_type } => {
            w.message(1, |w| w.text(1, value).text(2, mime_type))
        }
        PartSource::Url { value, mime_type } => {
            w.message(2, |w| w.text(1, value).optional_text(2, mime_type))
        }
        PartSource::File { value, provider, mime_type } => w.message(3, |w| {
            w.text(1, value).optional_text(2, provider).optional_text(3, mime_type)
        }),
    });
    w.optional_value(2, media.metadata.as_ref()).optional_text(3, &media.id)
}

fn tool_call<'w>(call: &ToolCall, w: &'w mut Writer) -> &'w mut Writer {
    w.text(1, &call.id).text(2, "function");
    w.message(3, |w| w.text(1, &call.function.name).text(2, &call.function.arguments));
    w.object(4, call.metadata.as_deref());
    w.optional_text(5, &call.encrypted_value).optional_text(6, &call.encrypted_value_type)
}

/// One protobuf type has the fields of all roles.
pub(super) fn message<'w>(message: &Message, w: &'w mut Writer) -> &'w mut Writer {
    w.text(1, message.id()).text(2, message.role().as_str());
    let name = &message.name();
    match message {
        Message::Developer(m) => w.present_text(3, &m.content).optional_text(4, name),
        Message::System(m) => w.present_text(3, &m.content).optional_text(4, name),
        Message::Assistant(m) => w.optional_text(3, &m.content).optional_text(4, name).messages(
            5,
            m.tool_calls(),
            tool_call,
        ),
        Message::User(m) => content(3, 8, &m.content, w, |w| w.optional_text(4, name)),
        Message::Tool(m) => content(3, 8, &m.content, w, |w| {
            w.present_text(6, &m.tool_call_id).optional_text(7, &m.error)
        }),
        Message::Activity(_) => w,
        Message::Reasoning(m) => w.present_text(3, &m.content),
    };
    w.object(9, message.metadata().map(|metadata| &**metadata))
        .optional_text(10, &message.subagent_run_id());
    let (encrypted, encrypted_type) = message.encrypted_value();
    w.optional_text(11, &encrypted);
    if let Message::Activity(activity) = message {
        w.present_text(12, &activity.activity_type).object(13, Some(&activity.content));
    }
    w.optional_text(14, &encrypted_type)
}

pub(super) fn interrupt<'w>(interrupt: &Interrupt, w: &'w mut Writer) -> &'w mut Writer {
    w.text(1, &interrupt.id).text(2, &interrupt.reason);
    w.optional_text(3, &interrupt.message).optional_text(4, &interrupt.tool_call_id);
    // The `.proto` file declares 5 and 7 as `Value`, so the object is the `struct_value` of one.
    w.messages(5, &interrupt.response_schema, |schema, w| w.object(5, Some(schema)));
    w.optional_text(6, &interrupt.expires_at);
    w.messages(7, &interrupt.metadata, |metadata, w| w.object(5, Some(metadata)));
    w.optional_text(8, &interrupt.subagent_run_id)
}

pub(super) fn input<'w>(input: &RunAgentInput, w: &'w mut Writer) -> &'w mut Writer {
    w.text(1, &input.thread_id).text(2, &input.run_id).optional_text(3, &input.parent_run_id);
    w.optional_value(4, input.state.as_ref()).messages(5, &input.messages, message);
    w.messages(6, &input.tools, tool).messages(7, &input.context, context);
    w.optional_value(8, input.forwarded_props.as_ref()).messages(9, &input.resume, resume);
    w.optional_text(10, &input.protocol_version)
}

fn tool<'w>(tool: &ToolDefinition, w: &'w mut Writer) -> &'w mut Writer {
    w.text(1, &tool.name).text(2, &tool.description);
    w.optional_value(3, tool.parameters.as_ref()).object(4, tool.metadata.as_deref())
}

fn context<'w>(context: &Context, w: &'w mut Writer) -> &'w mut Writer {
    w.text(1, &context.description).text(2, &context.value)
}

fn resume<'w>(entry: &ResumeEntry, w: &'w mut Writer) -> &'w mut Writer {
    let status = match entry.status {
        ResumeStatus::Resolved => "resolved",
        ResumeStatus::Cancelled => "cancelled",
    };
    w.text(1, &entry.interrupt_id).text(2, status);
    w.optional_value(3, entry.payload.as_ref()).object(4, entry.metadata.as_deref())
}
