//! Parts of messages and results of tools as content blocks.

use serde_json::{Value, json};

use super::{PROVIDER, request::text};
use crate::{
    llm::{
        ToolResult,
        wire::{LEFT_OUT, call_id, essence, file_name, warn_left_out},
    },
    protocol::{ContentPart, MediaPart, MessageContent, PartSource},
};

/// Content blocks.
#[derive(Default)]
pub(super) struct Content {
    pub(super) blocks: Vec<Value>,
    /// Whether a file is among them that is at the provider.
    pub(super) has_files: bool,
}

/// The parts that the model can read.
pub(super) fn parts(parts: &[ContentPart]) -> Content {
    let mut content = Content::default();
    for part in parts {
        let block = match part {
            // Blank text is refused.
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

/// Where the bytes are, if the provider reads such bytes from there.
fn source(media: &MediaPart, document: bool) -> Option<Value> {
    match &media.source {
        PartSource::Data { value, mime_type } => {
            let mime_type = match essence(mime_type).as_str() {
                // What everybody calls it who does not know its name.
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

/// What a tool returned, and whether a file at the provider is in it.
pub(super) fn tool_result(result: &ToolResult) -> (Value, bool) {
    let mut block = json!({"type": "tool_result", "tool_use_id": call_id(&result.call_id)});
    let mut has_files = false;
    match &result.content {
        // A result may be empty, but its text may not.
        MessageContent::Text(said) if said.trim().is_empty() => {}
        MessageContent::Text(said) => block["content"] = said.as_str().into(),
        MessageContent::Parts(said) => {
            let content = parts(said);
            has_files = content.has_files;
            if !content.blocks.is_empty() {
                block["content"] = content.blocks.into();
            } else if said.iter().any(|part| !matches!(part, ContentPart::Text(_))) {
                block["content"] = LEFT_OUT.into();
            }
        }
    }
    if result.failed {
        block["is_error"] = true.into();
    }
    (block, has_files)
}
