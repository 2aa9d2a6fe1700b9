//! Parts of the request JSON that all providers have in common.

use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::{Map, Value, json};

use super::{AssistantTurn, Block, Turn};
use crate::protocol::{ContentPart, MediaPart, ToolCallId};

/// Providers refuse empty messages.
pub(super) const UNREADABLE_TEXT: &str = "(There was an attachment here that this model cannot read.)";

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
    tracing::warn!(provider, kind, source, mime_type, "left out a part of a message, because the model cannot read it");
}

/// Returns a MIME type without its parameters, in lower case.
pub(super) fn essence(mime_type: &str) -> String {
    mime_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

pub(super) fn file_name(media: &MediaPart) -> Option<&str> {
    let metadata = media.metadata.as_ref()?;
    ["filename", "fileName", "name"].iter().find_map(|key| metadata.get(key)?.as_str()).filter(|name| !name.is_empty())
}

/// Providers require an object with properties, and clients send `{}` for a tool without arguments.
pub(super) fn schema(parameters: &Value) -> Value {
    let mut schema = parameters.as_object().cloned().unwrap_or_default();
    schema.entry("type").or_insert_with(|| "object".into());
    if schema.get("type").is_some_and(|kind| kind == "object") {
        schema.entry("properties").or_insert_with(|| json!({}));
    }
    schema.into()
}

/// Providers refuse invalid JSON, so it becomes an empty object.
pub(super) fn arguments(text: &str) -> Map<String, Value> {
    serde_json::from_str(text).unwrap_or_default()
}

/// Another provider's id may be too long or have other characters. Its hash keeps a call and its result together.
pub(super) fn call_id(id: &ToolCallId) -> String {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if (1..=40).contains(&id.len()) && id.chars().all(is_allowed) {
        return id.as_str().to_owned();
    }
    let mut hasher = DefaultHasher::new();
    id.hash(&mut hasher);
    format!("call_{:016x}", hasher.finish())
}

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
        let without_properties = json!({"type": "object", "required": ["a"]});
        assert_eq!(schema(&without_properties)["properties"], json!({}));
    }

    #[test]
    fn arguments_that_are_not_an_object_become_an_empty_one() {
        for text in ["", "{", "[]", "null", "\"a\"", "{\"a\":1} x"] {
            assert_eq!(arguments(text), Map::new(), "{text}");
        }
        assert_eq!(Value::from(arguments(" {\"b\":1,\"a\":[2]} ")).to_string(), r#"{"b":1,"a":[2]}"#);
    }

    #[test]
    fn an_id_that_a_provider_would_refuse_is_replaced_by_its_hash() {
        assert_eq!(call_id(&"call_aB-1".into()), "call_aB-1");
        for id in ["", "a:b", "é", &"x".repeat(41)] {
            let replaced = call_id(&id.into());
            assert_eq!(replaced, call_id(&id.into()));
            assert_eq!(replaced.len(), 21);
        }
        assert_ne!(call_id(&"a:b".into()), call_id(&"a:c".into()));
    }
}
