//! The text that grows.
//!
//! A stream mostly continues what it has just continued. Its text is kept outside of its message meanwhile, and the last
//! of it here in the transcript itself: with hundreds of streams each event finds the caches cold, and the way
//! over the list of messages to the text costs more than appending to it.

use super::{Transcript, merge};
use crate::protocol::{JsonObject, Message, MessageContent, MessageId, ToolMessage, UserMessage};

/// How many bytes are kept before they go to the rest of the text.
const ROOM: usize = 184;

/// Whose text it is, and the whole of it; the message has none as long as it is here.
#[derive(Debug, Clone)]
pub(super) struct Tail {
    /// What comes before the last part.
    text: String,
    last: [u8; ROOM],
    /// How many bytes the last part has.
    len: usize,
    message: Option<MessageId>,
}

impl Default for Tail {
    fn default() -> Self {
        Self { text: String::new(), last: [0; ROOM], len: 0, message: None }
    }
}

impl Tail {
    fn is_of(&self, id: &MessageId) -> bool {
        self.message.as_ref().is_some_and(|message| message.is(id))
    }

    fn push(&mut self, delta: &str) {
        let end = self.len + delta.len();
        if let Some(place) = self.last.get_mut(self.len..end) {
            place.copy_from_slice(delta.as_bytes());
            self.len = end;
        } else {
            if self.text.is_empty() {
                // It goes on; and whatever grows step by step is copied at each.
                self.text.reserve(8 * ROOM);
            }
            self.gather();
            self.text.push_str(delta);
        }
    }

    fn gather(&mut self) {
        // Whole texts came in, so nothing is lost.
        self.text.push_str(&String::from_utf8_lossy(&self.last[..self.len]));
        self.len = 0;
    }
}

impl Transcript {
    /// Appends to a message's text. Content that is a list of parts gives way to the text.
    pub(super) fn append(&mut self, id: &MessageId, delta: &str, metadata: Option<&JsonObject>) {
        if metadata.is_none() && self.tail.is_of(id) {
            self.tail.push(delta);
            return;
        }
        self.settle();
        let Some(message) = self.message_mut(id) else { return };
        if let Message::User(UserMessage { content, .. }) | Message::Tool(ToolMessage { content, .. }) = message
            && matches!(content, MessageContent::Parts(_))
        {
            *content = String::new().into();
        }
        let Some(text) = text_mut(message) else { return };
        let text = std::mem::take(text);
        merge(message.metadata_mut(), metadata);
        (self.tail.message, self.tail.text) = (Some(id.clone()), text);
        self.tail.push(delta);
    }

    /// Gives the text back to its message, before anything else looks at the messages.
    pub(super) fn settle(&mut self) {
        let Some(id) = self.tail.message.take() else { return };
        self.tail.gather();
        let text = std::mem::take(&mut self.tail.text);
        if let Some(place) = self.message_mut(&id).and_then(text_mut) {
            *place = text;
        }
    }
}

/// The text that a message consists of; an activity has none.
fn text_mut(message: &mut Message) -> Option<&mut String> {
    match message {
        Message::Developer(m) => Some(&mut m.content),
        Message::System(m) => Some(&mut m.content),
        Message::Reasoning(m) => Some(&mut m.content),
        Message::Assistant(m) => Some(m.content.get_or_insert_default()),
        Message::User(UserMessage { content, .. }) | Message::Tool(ToolMessage { content, .. }) => match content {
            MessageContent::Text(text) => Some(text),
            MessageContent::Parts(_) => None,
        },
        Message::Activity(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    /// Deltas of every length about the room there is, whose characters take one to four bytes.
    #[test]
    fn nothing_is_lost_where_the_room_ends() {
        let id = MessageId::from("m");
        let mut transcript = Transcript::new(vec![Message::user("m", "")], Value::Null);
        let mut expected = String::new();
        for length in (1..=3 * ROOM).chain([1, ROOM, ROOM + 1, 0, ROOM - 1]) {
            let delta: String = "aé深🙂".chars().cycle().skip(length).take(length).collect();
            transcript.append(&id, &delta, None);
            expected += &delta;
            if length % 7 == 0 {
                assert_eq!(transcript.messages(), [Message::user("m", &*expected)]);
            }
        }
        assert_eq!(transcript.clone().into_parts().0, [Message::user("m", &*expected)]);
        assert_eq!(transcript.messages(), [Message::user("m", &*expected)]);
    }
}
