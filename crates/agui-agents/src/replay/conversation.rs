//! Finds the recording of a conversation.

use std::{collections::HashMap, sync::Arc};

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use agui_observe::recording::Recording;
use agui_protocol::{Message, MessageContent, RunAgentInput};

/// A digest of a conversation without its identifiers.
type Key = [u8; 32];

/// Recordings by their conversations.
#[derive(Debug)]
pub(super) struct Conversations(HashMap<Key, Arc<Recording>>);

impl Conversations {
    /// Keeps the first recording of each conversation.
    pub(super) fn new(recordings: Vec<Recording>) -> Self {
        let mut conversations = HashMap::new();
        for recording in recordings.into_iter().map(Arc::new) {
            for key in keys(&recording.head.request) {
                conversations.entry(key).or_insert_with(|| recording.clone());
            }
        }
        Self(conversations)
    }

    /// Returns the recording of the same conversation. Without one, returns a recording with the
    /// same messages of the client: the agent's texts differ after a fault, or if recordings of
    /// several runs are mixed.
    pub(super) fn find(&self, input: &RunAgentInput) -> Option<Arc<Recording>> {
        keys(input).iter().find_map(|key| self.0.get(key)).cloned()
    }
}

/// Returns the key of the whole conversation, and the key of the client's part: the messages of
/// users, all messages after the agent's last one, and the replies to interrupts.
fn keys(input: &RunAgentInput) -> [Key; 2] {
    let messages = || input.messages.iter().enumerate();
    let last = input.messages.iter().rposition(|message| matches!(message, Message::Assistant(_)));
    let by_client = messages().filter(|(position, message)| {
        matches!(message, Message::User(_)) || last.is_none_or(|last| *position > last)
    });
    [
        key("whole", messages().filter_map(|(_, message)| part(message)), input),
        key("client", by_client.filter_map(|(_, message)| part(message)), input),
    ]
}

/// Returns the compared part of a message.
fn part(message: &Message) -> Option<Value> {
    Some(match message {
        Message::Developer(message) => json!(["instructions", message.content]),
        Message::System(message) => json!(["instructions", message.content]),
        Message::User(message) => json!(["user", without_sources(&message.content)]),
        Message::Tool(message) => json!(["result", without_sources(&message.content)]),
        Message::Assistant(message) => {
            let text = message.content.as_deref().unwrap_or_default();
            let calls: Vec<_> =
                message.tool_calls().iter().map(|call| json!(call.function)).collect();
            json!(["assistant", text, calls])
        }
        Message::Activity(_) | Message::Reasoning(_) => return None,
    })
}

/// Removes the places of media: a recording has the name of a file where a client has sent the
/// data.
fn without_sources(content: &MessageContent) -> Value {
    let mut content = json!(content);
    for part in content.as_array_mut().into_iter().flatten().filter_map(Value::as_object_mut) {
        part.remove("source");
    }
    content
}

fn key(kind: &str, parts: impl Iterator<Item = Value>, input: &RunAgentInput) -> Key {
    let mut digest = Sha256::new_with_prefix(kind);
    let replies = input.resume.iter().map(|entry| json!(["reply", entry.status, entry.payload]));
    for part in parts.chain(replies) {
        digest.update(part.to_string());
        digest.update("\n");
    }
    digest.finalize().into()
}
