//! Content blocks of messages and tool results.

use serde_json::{Value, json};

use super::options::PROVIDER;
use crate::{
    llm::{
        ToolResult,
        wire::{UNREADABLE_TEXT, call_id, essence, file_name, warn_left_out},
    },
    protocol::{ContentPart, MediaPart, MessageContent, PartSource},
};

#[derive(Default)]
pub(super) struct Content {
    pub(super) blocks: Vec<Value>,
    pub(super) has_files: bool,
}

pub(super) fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

pub(super) fn parts(parts: &[ContentPart]) -> Content {
    let mut content = Content::default();
    for part in parts {
        let block = match part {
            // The API refuses blank text.
            ContentPart::Text(part) if part.text.trim().is_empty() => continue,
            ContentPart::Text(part) => Some(text(&part.text)),
            ContentPart::Image(media) => source(media, false).map(|source| json!({"type": "image", "source": source})),
            ContentPart::Document(media) => source(media, true).map(|source| {
                let mut block = json!({"type": "document", "source": source});
                if let Some(name) = file_name(media) {
                    block["title"] = name.into();
                }
                block
            }),
            ContentPart::Audio(_) | ContentPart::Video(_) => None,
        };
        match block {
            Some(block) => {
                content.has_files |= block["source"]["type"] == "file";
                content.blocks.push(block);
            }
            None => warn_left_out(PROVIDER, part),
        }
    }
    content
}

/// `None` if the provider does not read this type from this kind of source.
fn source(media: &MediaPart, document: bool) -> Option<Value> {
    match &media.source {
        PartSource::Data { value, mime_type } => {
            let mime_type = match essence(mime_type).as_str() {
                // A common name for the registered `image/jpeg`.
                "image/jpg" => "image/jpeg".to_owned(),
                other => other.to_owned(),
            };
            let readable = match document {
                true => mime_type == "application/pdf",
                false => matches!(mime_type.as_str(), "image/jpeg" | "image/png" | "image/gif" | "image/webp"),
            };
            readable.then(|| json!({"type": "base64", "media_type": mime_type, "data": value}))
        }
        PartSource::Url { value, mime_type } => {
            let pdf = mime_type.as_deref().is_none_or(|mime_type| essence(mime_type) == "application/pdf");
            (!document || pdf).then(|| json!({"type": "url", "url": value}))
        }
        PartSource::File { value, provider, .. } => {
            (provider.as_deref() == Some(PROVIDER)).then(|| json!({"type": "file", "file_id": value}))
        }
    }
}

/// The second value is true if the block refers to a file at the provider.
pub(super) fn tool_result(result: &ToolResult) -> (Value, bool) {
    let mut block = json!({"type": "tool_result", "tool_use_id": call_id(&result.call_id)});
    let mut has_files = false;
    match &result.content {
        // A result may have no content, but not an empty text.
        MessageContent::Text(text) if text.trim().is_empty() => {}
        MessageContent::Text(text) => block["content"] = text.as_str().into(),
        MessageContent::Parts(all) => {
            let content = parts(all);
            has_files = content.has_files;
            if !content.blocks.is_empty() {
                block["content"] = content.blocks.into();
            } else if all.iter().any(|part| !matches!(part, ContentPart::Text(_))) {
                block["content"] = UNREADABLE_TEXT.into();
            }
        }
    }
    if result.failed {
        block["is_error"] = true.into();
    }
    (block, has_files)
}
