//! Server-Sent Events in AG-UI's HTTP binding: `data: {json}` and an empty line for each event, with LF only. Most
//! events of a stream are deltas, so these are written without serde; a test keeps their bytes equal.

use std::sync::Arc;

use super::{
    client_traits::{ClientTraits, ReasoningEvents},
    downgrade::Downgraded,
    thinking::ThinkingWriter,
};
use crate::{
    Event, EventType,
    event::{ReasoningMessageContent, TextMessageContent, ToolCallArgs},
};

/// The longest constant part of deltas beside the id. Growing to it took 2 % of the instructions of
/// a short run.
const PREFIX_BYTES: usize = 80;

/// Writes events as Server-Sent Events.
#[derive(Debug, Default)]
pub struct Sse {
    /// The constant part of the delta events of the item `id`.
    prefix: Vec<u8>,
    /// Deltas of one item mostly share one `Arc`, so that comparing pointers is enough.
    id: Option<Arc<str>>,
    event_type: Option<EventType>,
    traits: ClientTraits,
    thinking: ThinkingWriter,
}

impl Sse {
    /// Returns the encoder for a client with these traits.
    pub fn for_client(traits: ClientTraits) -> Self {
        Self { traits, ..Self::default() }
    }

    /// Appends an event.
    pub fn event(&mut self, event: &Event, out: &mut Vec<u8>) {
        if self.traits.reasoning != ReasoningEvents::Messages
            && let Some(thinking) = self.thinking.events(event)
        {
            if self.traits.reasoning == ReasoningEvents::Thinking {
                thinking.iter().for_each(|json| write_line(json, out));
            }
            return;
        }
        match plain_delta(event) {
            Some(delta) => self.delta(&delta, out),
            None => match self.traits.downgrade(event) {
                Downgraded::Unchanged => write_event(event, out),
                Downgraded::Changed(event) => write_event(&event, out),
                Downgraded::LeftOut => {}
            },
        }
    }

    pub(super) fn line(&mut self, json: &str, out: &mut Vec<u8>) {
        if !self.traits.may_change_line(json) {
            return write_line(json, out);
        }
        match serde_json::from_str(json) {
            Ok(event) => self.event(&event, out),
            Err(error) => {
                tracing::error!(%error, "cannot read an event of a run's log; it is sent unchanged");
                write_line(json, out);
            }
        }
    }

    /// Consecutive deltas are mostly of one item, so the constant part is kept.
    fn delta(&mut self, event: &Delta<'_>, out: &mut Vec<u8>) {
        let is_same_item = self.event_type == Some(event.event_type)
            && self.id.as_ref().is_some_and(|id| Arc::ptr_eq(id, event.id) || id == event.id);
        if !is_same_item {
            (self.event_type, self.id) = (Some(event.event_type), Some(event.id.clone()));
            let prefix = &mut self.prefix;
            prefix.clear();
            prefix.reserve(PREFIX_BYTES + event.id.len());
            for part in
                ["data: {\"type\":\"", event.event_type.as_str(), "\",\"", event.id_member, "\":"]
            {
                prefix.extend_from_slice(part.as_bytes());
            }
            write_string(event.id, prefix);
            prefix.extend_from_slice(b",\"delta\":");
        }
        out.extend_from_slice(&self.prefix);
        write_string(event.delta, out);
        out.extend_from_slice(b"}\n\n");
    }
}

/// An event that has no members but its type, the id and the delta.
struct Delta<'a> {
    event_type: EventType,
    id_member: &'static str,
    id: &'a Arc<str>,
    delta: &'a str,
}

/// Names all members, so that a new one cannot be forgotten here.
fn plain_delta(event: &Event) -> Option<Delta<'_>> {
    let (id_member, id, delta, owner, base) = match event {
        Event::TextMessageContent(TextMessageContent {
            message_id,
            delta,
            subagent_run_id,
            base,
        }) => ("messageId", message_id.shared(), delta, subagent_run_id, base),
        Event::ToolCallArgs(ToolCallArgs { tool_call_id, delta, subagent_run_id, base }) => {
            ("toolCallId", tool_call_id.shared(), delta, subagent_run_id, base)
        }
        Event::ReasoningMessageContent(ReasoningMessageContent {
            message_id,
            delta,
            subagent_run_id,
            base,
        }) => ("messageId", message_id.shared(), delta, subagent_run_id, base),
        _ => return None,
    };
    let is_plain = owner.is_none() && base.is_empty();
    is_plain.then(|| Delta { event_type: event.event_type(), id_member, id, delta })
}

fn write_event(event: &Event, out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(b"data: ");
    match serde_json::to_writer(&mut *out, event) {
        Ok(()) => out.extend_from_slice(b"\n\n"),
        Err(error) => {
            out.truncate(start);
            tracing::error!(%error, event = event.event_type().as_str(), "left out an event that cannot be serialized");
        }
    }
}

fn write_line(json: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(b"data: ");
    out.extend_from_slice(json.as_bytes());
    out.extend_from_slice(b"\n\n");
}

pub fn write_string(text: &str, out: &mut Vec<u8>) {
    // Serializing a text into a `Vec` cannot fail.
    let _ = serde_json::to_writer(out, text);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{TextMessageEnd, ToolCallStart};

    fn encoded(events: &[Event]) -> String {
        let (mut sse, mut out) = (Sse::default(), Vec::new());
        events.iter().for_each(|event| sse.event(event, &mut out));
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn plain_deltas_are_written_as_serde_writes_them() {
        let mut annotated = TextMessageContent::new("m\"1", "x");
        annotated.base.set_timestamp(Some(7));
        let events: Vec<Event> = vec![
            TextMessageContent::new("m\"1", "a\n\"\u{2028}é").into(),
            TextMessageContent::new("m\"1", "").into(),
            annotated.into(),
            ToolCallArgs::new("m\"1", "{\"a\":").into(),
            TextMessageContent::new("m2", "b").into(),
            ReasoningMessageContent::new("m2", "c").into(),
            Event::from(TextMessageContent::new("m2", "d")).attributed_to(Some("s".into())),
            ToolCallStart::new("c", "tool").into(),
            TextMessageEnd::new("m2").into(),
        ];
        let serde: String = events
            .iter()
            .map(|event| format!("data: {}\n\n", serde_json::to_string(event).unwrap()))
            .collect();
        assert_eq!(encoded(&events), serde);
    }
}
