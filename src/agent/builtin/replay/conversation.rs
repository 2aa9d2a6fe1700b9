//! Finds the recording of a conversation.

use std::collections::HashMap;

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::{
    protocol::recording::Recording,
    protocol::{Message, MessageContent, RunAgentInput},
};

/// A digest of a conversation, in which identifiers do not count.
type Key = [u8; 32];

/// Recordings by their conversations.
#[derive(Debug)]
pub(super) struct Conversations {
    whole: HashMap<Key, usize>,
    of_client: HashMap<Key, usize>,
}

impl Conversations {
    /// Of several recordings of a conversation, the first one counts.
    pub(super) fn new(recordings: &[Recording]) -> Self {
        let mut conversations = Self { whole: HashMap::new(), of_client: HashMap::new() };
        for (position, recording) in recordings.iter().enumerate() {
            let request = &recording.head.request;
            conversations.whole.entry(whole_key(request)).or_insert(position);
            conversations.of_client.entry(client_key(request)).or_insert(position);
        }
        conversations
    }

    /// Returns the position of the recording with the same conversation, or else of one in which the client said the
    /// same: the agent's texts are others after a fault, or when recordings of several runs are mixed.
    pub(super) fn find(&self, input: &RunAgentInput) -> Option<usize> {
        let of_client = || self.of_client.get(&client_key(input));
        self.whole.get(&whole_key(input)).or_else(of_client).copied()
    }
}

fn whole_key(input: &RunAgentInput) -> Key {
    key(input.messages.iter().filter_map(part), input)
}

/// The messages of users, what follows the agent's last message, and the answers to interrupts.
fn client_key(input: &RunAgentInput) -> Key {
    let last = input.messages.iter().rposition(|message| matches!(message, Message::Assistant(_)));
    let is_of_client = |position: usize, message: &Message| {
        matches!(message, Message::User(_)) || last.is_none_or(|last| position > last)
    };
    let messages = input.messages.iter().enumerate().filter(|(position, message)| is_of_client(*position, message));
    key(messages.filter_map(|(_, message)| part(message)), input)
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
            let calls: Vec<_> = message.tool_calls().iter().map(|call| json!(call.function)).collect();
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

fn key(parts: impl Iterator<Item = Value>, input: &RunAgentInput) -> Key {
    let mut digest = Sha256::new();
    let answers = input.resume.iter().map(|entry| json!(["answer", entry.status, entry.payload]));
    for part in parts.chain(answers) {
        digest.update(part.to_string());
        digest.update("\n");
    }
    digest.finalize().into()
}
