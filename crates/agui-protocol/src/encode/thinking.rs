//! Reasoning for clients from before AG-UI had it: the events of thinking, which have no ids.

use serde_json::json;

use crate::{Event, MessageId};

/// Writes reasoning messages as thinking. Only one can be open in such a stream: what overlaps with
/// it is left out, and so is encrypted reasoning.
#[derive(Debug, Default)]
pub(super) struct ThinkingWriter {
    open: Option<MessageId>,
}

impl ThinkingWriter {
    /// Returns what becomes of an event, as JSON. `None` for an event that is not of reasoning.
    pub(super) fn events(&mut self, event: &Event) -> Option<Vec<String>> {
        let of_type = |event_type| json!({ "type": event_type });
        let is_open = |id: &MessageId| self.open.as_ref() == Some(id);
        let events = match event {
            Event::ReasoningMessageStart(start) if self.open.is_none() => {
                self.open = Some(start.message_id.clone());
                ["THINKING_START", "THINKING_TEXT_MESSAGE_START"].map(of_type).to_vec()
            }
            Event::ReasoningMessageContent(content) if is_open(&content.message_id) => {
                vec![json!({ "type": "THINKING_TEXT_MESSAGE_CONTENT", "delta": content.delta })]
            }
            Event::ReasoningMessageEnd(end) if is_open(&end.message_id) => {
                self.open = None;
                ["THINKING_TEXT_MESSAGE_END", "THINKING_END"].map(of_type).to_vec()
            }
            Event::ReasoningStart(_)
            | Event::ReasoningMessageStart(_)
            | Event::ReasoningMessageContent(_)
            | Event::ReasoningMessageChunk(_)
            | Event::ReasoningMessageEnd(_)
            | Event::ReasoningEnd(_)
            | Event::ReasoningEncryptedValue(_) => Vec::new(),
            _ => return None,
        };
        Some(events.iter().map(ToString::to_string).collect())
    }
}
