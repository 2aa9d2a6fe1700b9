//! Finds the recording of a conversation.

use std::{collections::HashMap, sync::Arc};

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use agui_observe::recording::Recording;
use agui_protocol::{Message, MessageContent, RunAgentInput};

/// A digest of a conversation, in which identifiers do not count.
type Key = [u8; 32];

/// Recordings by their conversations.
#[derive(Debug)]
pub(super) struct Conversations(HashMap<Key, Arc<Recording>>);

impl Conversations {
    /// Of several recordings of a conversation, the first one counts.
    pub(super) fn new(recordings: Vec<Recording>) -> Self {
        let mut conversations = HashMap::new();
        for recording in recordings.into_iter().map(Arc::new) {
            for key in keys(&recording.head.request) {
                conversations.entry(key).or_insert_with(|| recording.clone());
            }
        }
        Self(conversations)
    }

    /// Returns the recording with the same conversation, or else of one in which the client said the
    /// same: the agent's texts are others after a fault, or when recordings of several runs are mixed.
    pub(super) fn find(&self, input: &RunAgentInput) -> Option<Arc<Recording>> {
        keys(input).iter().find_map(|key| self.0.get(key)).cloned()
    }
}

/// The key of the whole conversation, and that of what is the client's: the messages of users, what follows the agent's last
/// message, and the answers to interrupts.
fn keys(input: &RunAgentInput) -> [Key; 2] {
    let messages = || input.messages.iter().enumerate();
    let last = input.messages.iter().rposition(|message| matches!(message, Message::Assistant(_)));
    let of_client = messages().filter(|(position, message)| {
        matches!(message, Message::User(_)) || last.is_none_or(|last| *position > last)
    });
    [
        key("whole", messages().filter_map(|(_, message)| part(message)), input),
        key("client", of_client.filter_map(|(_, message)| part(message)), input),
    ]
}

/// What counts of a message.
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

/// Where the bytes of a picture are does not count: a recording has the name of a file where a client has sent its data.
fn without_sources(content: &MessageContent) -> Value {
    let mut content = json!(content);
    for part in content.as_array_mut().into_iter().flatten().filter_map(Value::as_object_mut) {
        part.remove("source");
    }
    content
}

fn key(kind: &str, parts: impl Iterator<Item = Value>, input: &RunAgentInput) -> Key {
    let mut digest = Sha256::new_with_prefix(kind);
    let answers = input.resume.iter().map(|entry| json!(["answer", entry.status, entry.payload]));
    for part in parts.chain(answers) {
        digest.update(part.to_string());
        digest.update("\n");
    }
    digest.finalize().into()
}
