//! The payloads of events: messages, content parts, interrupts, the run's input.

use super::writer::Writer;
use crate::protocol::{
    ContentPart, Interrupt, JsonObject, MediaPart, Message, MessageContent, PartSource, ResumeStatus, RunAgentInput,
    ToolCall,
};

/// `between` writes the fields whose numbers lie between those of the text and of the parts.
pub(super) fn content(
    text_field: u32,
    parts_field: u32,
    content: &MessageContent,
    w: &mut Writer<'_>,
    between: impl FnOnce(&mut Writer<'_>),
) {
    if let MessageContent::Text(text) = content {
        w.repeated_text(text_field, text);
    }
    between(w);
    if let MessageContent::Parts(parts) = content {
        parts.iter().for_each(|part| w.message(parts_field, |w| self::part(part, w)));
    }
}

fn part(part: &ContentPart, w: &mut Writer<'_>) {
    match part {
        ContentPart::Text(text) => w.message(1, |w| {
            w.text(1, &text.text);
            w.optional_text(2, text.id.as_deref());
            w.optional_value(3, text.metadata.as_ref());
        }),
        ContentPart::Image(media) => w.message(2, |w| self::media(media, w)),
        ContentPart::Audio(media) => w.message(3, |w| self::media(media, w)),
        ContentPart::Video(media) => w.message(4, |w| self::media(media, w)),
        ContentPart::Document(media) => w.message(5, |w| self::media(media, w)),
    }
}

fn media(media: &MediaPart, w: &mut Writer<'_>) {
    w.message(1, |w| match &media.source {
        PartSource::Data { value, mime_type } => w.message(1, |w| {
            w.text(1, value);
            w.text(2, mime_type);
        }),
        PartSource::Url { value, mime_type } => w.message(2, |w| {
            w.text(1, value);
            w.optional_text(2, mime_type.as_deref());
        }),
        PartSource::File { value, provider, mime_type } => w.message(3, |w| {
            w.text(1, value);
            w.optional_text(2, provider.as_deref());
            w.optional_text(3, mime_type.as_deref());
        }),
    });
    w.optional_value(2, media.metadata.as_ref());
    w.optional_text(3, media.id.as_deref());
}

fn tool_call(call: &ToolCall, w: &mut Writer<'_>) {
    w.text(1, &call.id);
    w.text(2, "function");
    w.message(3, |w| {
        w.text(1, &call.function.name);
        w.text(2, &call.function.arguments);
    });
    object(4, call.metadata.as_deref(), w);
    w.optional_text(5, call.encrypted_value.as_deref());
    w.optional_text(6, call.encrypted_value_type.as_deref());
}

fn object(field: u32, value: Option<&JsonObject>, w: &mut Writer<'_>) {
    if let Some(value) = value {
        w.message(field, |w| w.object(value));
    }
}

/// One protobuf type has the fields of all roles.
pub(super) fn message(message: &Message, w: &mut Writer<'_>) {
    w.text(1, message.id());
    w.text(2, message.role().as_str());
    let name = message.name();
    match message {
        Message::Developer(m) => {
            w.repeated_text(3, &m.content);
            w.optional_text(4, name);
        }
        Message::System(m) => {
            w.repeated_text(3, &m.content);
            w.optional_text(4, name);
        }
        Message::Assistant(m) => {
            w.optional_text(3, m.content.as_deref());
            w.optional_text(4, name);
            m.tool_calls().iter().for_each(|call| w.message(5, |w| tool_call(call, w)));
        }
        Message::User(m) => content(3, 8, &m.content, w, |w| w.optional_text(4, name)),
        Message::Tool(m) => content(3, 8, &m.content, w, |w| {
            w.repeated_text(6, &m.tool_call_id);
            w.optional_text(7, m.error.as_deref());
        }),
        Message::Activity(_) => {}
        Message::Reasoning(m) => w.repeated_text(3, &m.content),
    }
    object(9, message.metadata().map(|metadata| &**metadata), w);
    w.optional_text(10, message.subagent_run_id().map(AsRef::as_ref));
    let (encrypted, encrypted_type) = message.encrypted_value();
    w.optional_text(11, encrypted);
    if let Message::Activity(activity) = message {
        w.repeated_text(12, &activity.activity_type);
        w.message(13, |w| w.object(&activity.content));
    }
    w.optional_text(14, encrypted_type);
}

pub(super) fn interrupt(interrupt: &Interrupt, w: &mut Writer<'_>) {
    w.text(1, &interrupt.id);
    w.text(2, &interrupt.reason);
    w.optional_text(3, interrupt.message.as_deref());
    w.optional_text(4, interrupt.tool_call_id.as_deref());
    // The `.proto` file declares these two as `Value`, so the object is the `struct_value` of one.
    let object_value = |field, value: Option<&JsonObject>, w: &mut Writer<'_>| {
        if let Some(value) = value {
            w.message(field, |w| w.message(5, |w| w.object(value)));
        }
    };
    object_value(5, interrupt.response_schema.as_ref(), w);
    w.optional_text(6, interrupt.expires_at.as_deref());
    object_value(7, interrupt.metadata.as_deref(), w);
    w.optional_text(8, interrupt.subagent_run_id.as_deref());
}

pub(super) fn input(input: &RunAgentInput, w: &mut Writer<'_>) {
    w.text(1, &input.thread_id);
    w.text(2, &input.run_id);
    w.optional_text(3, input.parent_run_id.as_deref());
    w.optional_value(4, input.state.as_ref());
    input.messages.iter().for_each(|message| w.message(5, |w| self::message(message, w)));
    for tool in &input.tools {
        w.message(6, |w| {
            w.text(1, &tool.name);
            w.text(2, &tool.description);
            w.optional_value(3, tool.parameters.as_ref());
            object(4, tool.metadata.as_deref(), w);
        });
    }
    for context in &input.context {
        w.message(7, |w| {
            w.text(1, &context.description);
            w.text(2, &context.value);
        });
    }
    w.optional_value(8, input.forwarded_props.as_ref());
    for entry in &input.resume {
        w.message(9, |w| {
            w.text(1, &entry.interrupt_id);
            w.text(
                2,
                match entry.status {
                    ResumeStatus::Resolved => "resolved",
                    ResumeStatus::Cancelled => "cancelled",
                },
            );
            w.optional_value(3, entry.payload.as_ref());
            object(4, entry.metadata.as_deref(), w);
        });
    }
    w.optional_text(10, input.protocol_version.as_deref());
}
