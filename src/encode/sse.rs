//! Server-Sent Events as AG-UI binds them: `data: {json}` and an empty line, LF only, one event each.

use std::sync::Arc;

use super::legacy;
use crate::protocol::{
    Event, EventType, SubagentRunId,
    event::{BaseEvent, ReasoningMessageContent, TextMessageContent, ToolCallArgs},
};

/// Writes events as Server-Sent Events.
#[derive(Debug, Default)]
pub struct Sse {
    /// The constant part of the delta events of the item that is being streamed.
    prefix: Box<[u8]>,
    /// Which item that is. Its identifier is mostly the very one that the next event has, and then it is not read.
    id: Option<Arc<str>>,
    kind: Option<EventType>,
    /// Whether the client is from before AG-UI 1.0.
    pub(super) legacy: bool,
}

impl Sse {
    /// Appends an event.
    pub fn event(&mut self, event: &Event, out: &mut Vec<u8>) {
        match plain_delta(event) {
            Some(delta) => self.delta(&delta, out),
            None if self.legacy => write(&legacy::event(event), out),
            None => write(event, out),
        }
    }

    /// A stream is mostly deltas of one item, and those differ in the delta alone.
    fn delta(&mut self, event: &Delta<'_>, out: &mut Vec<u8>) {
        let same = self.kind == Some(event.kind)
            && self.id.as_ref().is_some_and(|id| Arc::ptr_eq(id, event.id) || id == event.id);
        if !same {
            (self.kind, self.id) = (Some(event.kind), Some(event.id.clone()));
            let mut prefix = Vec::new();
            prefix.extend_from_slice(b"data: {\"type\":\"");
            prefix.extend_from_slice(event.kind.as_str().as_bytes());
            prefix.extend_from_slice(b"\",\"");
            prefix.extend_from_slice(event.id_member.as_bytes());
            prefix.extend_from_slice(b"\":");
            string(event.id, &mut prefix);
            prefix.extend_from_slice(b",\"delta\":");
            self.prefix = prefix.into();
        }
        out.extend_from_slice(&self.prefix);
        string(event.delta, out);
        out.extend_from_slice(b"}\n\n");
    }
}

/// A delta event that carries nothing but its item and its delta.
struct Delta<'a> {
    kind: EventType,
    id_member: &'static str,
    id: &'a Arc<str>,
    delta: &'a str,
}

fn plain_delta(event: &Event) -> Option<Delta<'_>> {
    let plain = |owner: &Option<SubagentRunId>, base: &BaseEvent| owner.is_none() && base.is_empty();
    match event {
        Event::TextMessageContent(TextMessageContent { message_id, delta, subagent_run_id, base })
            if plain(subagent_run_id, base) =>
        {
            Some(Delta { kind: EventType::TextMessageContent, id_member: "messageId", id: message_id.shared(), delta })
        }
        Event::ToolCallArgs(ToolCallArgs { tool_call_id, delta, subagent_run_id, base })
            if plain(subagent_run_id, base) =>
        {
            Some(Delta { kind: EventType::ToolCallArgs, id_member: "toolCallId", id: tool_call_id.shared(), delta })
        }
        Event::ReasoningMessageContent(ReasoningMessageContent { message_id, delta, subagent_run_id, base })
            if plain(subagent_run_id, base) =>
        {
            Some(Delta {
                kind: EventType::ReasoningMessageContent,
                id_member: "messageId",
                id: message_id.shared(),
                delta,
            })
        }
        _ => None,
    }
}

fn write(event: &Event, out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(b"data: ");
    match serde_json::to_writer(&mut *out, event) {
        Ok(()) => out.extend_from_slice(b"\n\n"),
        // Every event is made of texts, numbers and JSON, so there is nothing that JSON could not express.
        Err(error) => {
            out.truncate(start);
            tracing::error!(%error, event = event.event_type().as_str(), "an event could not be encoded");
        }
    }
}

fn string(text: &str, out: &mut Vec<u8>) {
    // Writing a text into memory does not fail.
    let _ = serde_json::to_writer(out, text);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::event::{TextMessageEnd, ToolCallStart};

    fn encoded(events: &[Event]) -> String {
        let (mut sse, mut out) = (Sse::default(), Vec::new());
        events.iter().for_each(|event| sse.event(event, &mut out));
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn the_short_cut_for_deltas_writes_what_serde_writes() {
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
        let serde: String =
            events.iter().map(|event| format!("data: {}\n\n", serde_json::to_string(event).unwrap())).collect();
        assert_eq!(encoded(&events), serde);
    }
}
