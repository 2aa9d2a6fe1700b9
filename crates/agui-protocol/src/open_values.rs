//! The memory of parsed JSON, which can take 50 times its text: a state, metadata, and activities.

use serde_json::Value;

use super::{ContentPart, JsonObject, Message, ToolCall};

/// The memory of an object that is not empty, and of one of its members, beside names and values.
const OBJECT_BYTES: u64 = 320;
const MEMBER_BYTES: u64 = 64;

/// Returns the approximate memory of a value, in bytes.
pub fn memory(value: &Value) -> u64 {
    let memory_beside = match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        Value::String(text) => text.len() as u64,
        Value::Array(items) => items.iter().map(memory).sum(),
        Value::Object(object) => memory_of_object(object),
    };
    memory_beside + size_of::<Value>() as u64
}

/// Returns the approximate memory of the open values of a message, in bytes.
pub fn memory_of_message(message: &Message) -> u64 {
    let content: u64 = match message {
        Message::Activity(activity) => memory_of_object(&activity.content),
        message => message.parts().iter().filter_map(ContentPart::metadata).map(memory).sum(),
    };
    let of_calls =
        message.tool_calls().iter().filter_map(|ToolCall { metadata, .. }| metadata.as_ref());
    let metadata: u64 = message
        .metadata()
        .into_iter()
        .chain(of_calls)
        .map(|metadata| memory_of_object(metadata))
        .sum();
    content + metadata
}

fn memory_of_object(object: &JsonObject) -> u64 {
    let members = object
        .iter()
        .map(|(name, value)| MEMBER_BYTES + name.len() as u64 + memory(value))
        .sum::<u64>();
    if object.is_empty() { 0 } else { OBJECT_BYTES + members }
}
