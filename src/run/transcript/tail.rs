//! The text that grows.
//!
//! A stream mostly continues what it has just continued. Its text is kept outside of its message meanwhile: with
//! hundreds of streams each event finds the caches cold, and the way over the list of messages to the text
//! costs more than appending to it. So does the way to the end of a long text: the newest of it is gathered next to what
//! an event touches anyway.

use arrayvec::ArrayString;

use super::{Transcript, merge};
use crate::protocol::{JsonObject, Message, MessageContent, MessageId, ToolMessage, UserMessage};

/// Whose text it is, and the whole of it, first to last in `text` and `newest`; the message has none as long as it is
/// here.
#[derive(Debug, Clone, Default)]
#[repr(C)]
pub(super) struct Tail {
    message: Option<MessageId>,
    newest: ArrayString<NEWEST>,
    text: String,
}

/// Some deltas of a model, and with its length two lines of the cache.
const NEWEST: usize = 124;

impl Transcript {
    /// Appends to a message's text. Content that is a list of parts gives way to the text.
    #[inline]
    pub(super) fn append(&mut self, id: &MessageId, delta: &str, metadata: Option<&JsonObject>) {
        if metadata.is_none() && self.tail.message.as_ref().is_some_and(|message| message.is(id)) {
            self.tail.push(delta);
        } else {
            self.append_elsewhere(id, delta, metadata);
        }
    }

    #[inline(never)]
    fn append_elsewhere(&mut self, id: &MessageId, delta: &str, metadata: Option<&JsonObject>) {
        self.settle();
        let Some(message) = self.message_mut(id) else { return };
        if let Message::User(UserMessage { content, .. }) | Message::Tool(ToolMessage { content, .. }) = message
            && matches!(content, MessageContent::Parts(_))
        {
            *content = String::new().into();
        }
        let Some(text) = text_mut(message) else { return };
        text.push_str(delta);
        let text = std::mem::take(text);
        merge(message.metadata_mut(), metadata);
        self.tail = Tail { message: Some(id.clone()), newest: ArrayString::new(), text };
    }

    /// Gives the text back to its message, before anything else looks at the messages.
    pub(super) fn settle(&mut self) {
        let Tail { message: Some(id), newest, mut text } = std::mem::take(&mut self.tail) else { return };
        text.push_str(&newest);
        if let Some(place) = self.message_mut(&id).and_then(text_mut) {
            *place = text;
        }
    }
}

impl Tail {
    #[inline]
    fn push(&mut self, delta: &str) {
        if self.newest.try_push_str(delta).is_err() {
            self.push_on(delta);
        }
    }

    /// The newest is full.
    #[inline(never)]
    fn push_on(&mut self, delta: &str) {
        make_room(&mut self.text, self.newest.len() + delta.len());
        self.text.push_str(&self.newest);
        self.newest.clear();
        if self.newest.try_push_str(delta).is_err() {
            self.text.push_str(delta);
        }
    }
}

/// A text that has got this long is likely to get longer.
const LONG: usize = 128;

/// The room that it is given then: one that only doubles is copied again and again until it is there.
const ROOM: usize = 1024;

fn make_room(text: &mut String, more: usize) {
    if more > text.capacity() - text.len() && text.len() >= LONG {
        text.reserve(more.max(ROOM));
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
    use serde_json::{Value, json};

    use super::*;

    /// Of whatever length its deltas are, and wherever they end.
    #[test]
    fn a_long_text_is_whole() {
        let id = MessageId::from("a");
        let mut transcript = Transcript::new(vec![Message::user("a", "")], Value::Null);
        let lengths = [1, 20, NEWEST - 1, 0, NEWEST, 1, NEWEST + 1, 20, 20, 3 * NEWEST, 2, NEWEST / 2, NEWEST / 2];
        let deltas: Vec<String> = (0..30)
            .flat_map(|round| lengths.map(|length| "é😀x".chars().cycle().skip(round).take(length).collect()))
            .collect();
        for delta in &deltas {
            transcript.append(&id, delta, None);
        }
        assert_eq!(json!(transcript.messages()[0])["content"], deltas.concat());
    }

    /// However the deltas of two messages and whatever else come together, the messages are whole when they are asked for.
    #[test]
    fn a_text_is_whole_whenever_it_is_asked_for() {
        let (a, b) = (MessageId::from("a"), MessageId::from("b"));
        let metadata = json!({ "k": 1 });
        let mut transcript = Transcript::new(vec![Message::user("a", "1"), Message::user("b", "1")], Value::Null);
        transcript.append(&a, "2", None);
        transcript.append(&a, "3", None);
        transcript.append(&b, "2", None);
        transcript.append(&a, "4", metadata.as_object());
        transcript.append(&a, "5", None);
        transcript.append(&"unknown".into(), "x", None);
        let mut copy = transcript.clone();
        copy.append(&b, "3", None);
        let texts =
            |transcript: &mut Transcript| transcript.messages().iter().map(|m| json!(m)["content"].clone()).collect();
        let (here, there): (Vec<Value>, Vec<Value>) = (texts(&mut transcript), texts(&mut copy));
        assert_eq!((here, there), (vec![json!("12345"), json!("12")], vec![json!("12345"), json!("123")]));
        transcript.append(&a, "6", None);
        let (messages, _) = transcript.into_parts();
        assert_eq!(json!(messages[0])["content"], "123456");
        assert_eq!(json!(messages[0])["metadata"], metadata);
    }
}
