//! What the JSON of all providers has in common.

use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::{Map, Value, json};

use super::{AssistantTurn, Block, Turn};
use crate::protocol::{ContentPart, MediaPart, ToolCallId};

/// What stands where a message would be empty because the model can read nothing of it.
pub(super) const LEFT_OUT: &str = "(There was an attachment here that this model cannot read.)";

/// Said to the log when a part is left out.
pub(super) fn warn_left_out(provider: &str, part: &ContentPart) {
    let (kind, media) = match part {
        ContentPart::Text(_) => return,
        ContentPart::Image(media) => ("image", media),
        ContentPart::Audio(media) => ("audio", media),
        ContentPart::Video(media) => ("video", media),
        ContentPart::Document(media) => ("document", media),
    };
    use crate::protocol::PartSource::{Data, File, Url};
    let (source, mime_type) = match &media.source {
        Data { mime_type, .. } => ("data", Some(mime_type)),
        Url { mime_type, .. } => ("url", mime_type.as_ref()),
        File { mime_type, .. } => ("file", mime_type.as_ref()),
    };
    tracing::warn!(provider, kind, source, mime_type, "a part of a message was left out that the model cannot read");
}

/// The MIME type without its parameters, in lower case.
pub(super) fn essence(mime_type: &str) -> String {
    mime_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// The name of the file that a part is, as AG-UI clients write it.
pub(super) fn file_name(media: &MediaPart) -> Option<&str> {
    let metadata = media.metadata.as_ref()?;
    ["filename", "fileName", "name"].iter().find_map(|key| metadata.get(key)?.as_str()).filter(|name| !name.is_empty())
}

/// The schema of a tool's arguments. Providers want an object, and clients send `{}` for a tool without arguments.
pub(super) fn schema(parameters: &Value) -> Value {
    match parameters {
        Value::Object(schema) if schema.contains_key("type") => parameters.clone(),
        Value::Object(schema) => {
            let mut object = Map::from_iter([("type".to_owned(), json!("object"))]);
            object.extend(schema.clone());
            object.entry("properties").or_insert_with(|| json!({}));
            object.into()
        }
        _ => json!({"type": "object", "properties": {}}),
    }
}

/// The arguments of a call as an object: a model may have written anything, and a provider refuses what is none.
pub(super) fn arguments(text: &str) -> Map<String, Value> {
    serde_json::from_str(text).unwrap_or_default()
}

/// An id that every provider takes. One that has other characters or is longer comes from another provider, and is
/// replaced by one that is made from it, so that a call and its result still agree.
pub(super) fn call_id(id: &ToolCallId) -> String {
    let fine = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if (1..=40).contains(&id.len()) && id.chars().all(fine) {
        return id.as_str().to_owned();
    }
    let mut hasher = DefaultHasher::new();
    id.hash(&mut hasher);
    format!("call_{:016x}", hasher.finish())
}

/// The calls that the conversation has in it.
pub(super) fn calls(turns: &[Turn]) -> impl Iterator<Item = &crate::protocol::ToolCall> {
    let blocks = turns.iter().flat_map(|turn| match turn {
        Turn::Assistant(AssistantTurn { blocks }) => blocks.as_slice(),
        _ => &[],
    });
    blocks.filter_map(|block| match block {
        Block::Call(call) => Some(call),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schema_is_always_that_of_an_object() {
        let empty = json!({"type": "object", "properties": {}});
        assert_eq!(schema(&Value::Null), empty);
        assert_eq!(schema(&json!({})), empty);
        assert_eq!(schema(&json!({"properties": {"a": {}}})), json!({"type": "object", "properties": {"a": {}}}));
        let whole = json!({"type": "object", "required": ["a"]});
        assert_eq!(schema(&whole), whole);
    }

    #[test]
    fn arguments_that_are_no_object_are_empty() {
        for text in ["", "{", "[]", "null", "\"a\"", "{\"a\":1} x"] {
            assert_eq!(arguments(text), Map::new(), "{text}");
        }
        assert_eq!(Value::from(arguments(" {\"b\":1,\"a\":[2]} ")).to_string(), r#"{"b":1,"a":[2]}"#);
    }

    #[test]
    fn an_id_that_a_provider_would_refuse_is_replaced_by_always_the_same() {
        assert_eq!(call_id(&"call_aB-1".into()), "call_aB-1");
        for id in ["", "a:b", "é", &"x".repeat(41)] {
            let replaced = call_id(&id.into());
            assert_eq!(replaced, call_id(&id.into()));
            assert_eq!(replaced.len(), 21);
        }
        assert_ne!(call_id(&"a:b".into()), call_id(&"a:c".into()));
    }
}
