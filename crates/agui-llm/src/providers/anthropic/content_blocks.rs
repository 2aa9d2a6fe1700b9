//! Content blocks of messages and tool results.

use serde_json::{Value, json};

use crate::{
    ToolResult,
    providers::{
        attachments::Attachments,
        wire::{ANTHROPIC, call_id, known_image_type, own_file},
    },
};
use agui_base::text::essence;
use agui_protocol::{ContentPart, MediaPart, MessageContent, PartSource};

const MAX_TITLE_CHARS: usize = 500;

pub(super) fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

/// Returns the blocks of parts. A text replaces a part that the model cannot read.
pub(super) fn blocks(parts: &[ContentPart], attachments: &mut Attachments) -> Vec<Value> {
    // The API refuses blank text.
    let is_blank = |part: &&ContentPart| matches!(part, ContentPart::Text(part) if part.text.trim().is_empty());
    let block = |part: &ContentPart| match text_document(part, attachments) {
        Some(document) => document,
        None => attachments.sent(part, native).unwrap_or_else(|note| text(&note)),
    };
    parts.iter().filter(|part| !is_blank(part)).map(block).collect()
}

/// Returns a part in the API's form, or the reason why it is not sent.
fn native(part: &ContentPart) -> Result<Value, &'static str> {
    match part {
        ContentPart::Text(part) => Ok(text(&part.text)),
        ContentPart::Image(media) => image(media),
        ContentPart::Document(media) => document(media),
        ContentPart::Audio(_) => Err("this model takes no audio"),
        ContentPart::Video(_) => Err("this model takes no videos"),
    }
}

/// Returns an image in the API's form. Types:
/// <https://platform.claude.com/docs/en/build-with-claude/vision>.
fn image(media: &MediaPart) -> Result<Value, &'static str> {
    let source = match &media.source {
        PartSource::Data { value, mime_type } => {
            json!({"type": "base64", "media_type": known_image_type(mime_type)?, "data": value})
        }
        PartSource::Url { value, .. } => json!({"type": "url", "url": value}),
        PartSource::File { .. } => file(media)?,
    };
    Ok(json!({"type": "image", "source": source}))
}

/// Returns a PDF in the API's form, from data or a URL
/// (<https://platform.claude.com/docs/en/build-with-claude/citations>, "Document types").
fn document(media: &MediaPart) -> Result<Value, &'static str> {
    let is_pdf = |mime_type: &str| essence(mime_type) == "application/pdf";
    let source = match &media.source {
        PartSource::Data { value, mime_type } if is_pdf(mime_type) => {
            json!({"type": "base64", "media_type": "application/pdf", "data": value})
        }
        PartSource::Url { value, mime_type } if mime_type.as_deref().is_none_or(is_pdf) => {
            json!({"type": "url", "url": value})
        }
        PartSource::File { .. } => file(media)?,
        PartSource::Data { .. } => return Err("this model takes no documents of this type"),
        PartSource::Url { .. } => return Err("this model takes only PDFs at a URL"),
    };
    Ok(with_title(json!({"type": "document", "source": source}), media))
}

/// Returns a text file as a document. The API refuses a blank one.
fn text_document(part: &ContentPart, attachments: &mut Attachments) -> Option<Value> {
    let (media, text) = attachments.text_file(part)?;
    let source = json!({"type": "text", "media_type": "text/plain", "data": text});
    (!text.trim().is_empty())
        .then(|| with_title(json!({"type": "document", "source": source}), media))
}

fn with_title(mut document: Value, media: &MediaPart) -> Value {
    if let Some(name) = media.file_name() {
        document["title"] = name.chars().take(MAX_TITLE_CHARS).collect::<String>().into();
    }
    document
}

fn file(media: &MediaPart) -> Result<Value, &'static str> {
    Ok(json!({"type": "file", "file_id": own_file(media, ANTHROPIC)?}))
}

pub(super) fn tool_result(result: &ToolResult, attachments: &mut Attachments) -> Value {
    let mut block = json!({"type": "tool_result", "tool_use_id": call_id(&result.call_id)});
    match &result.content {
        // The API takes a result without content, but no empty text.
        MessageContent::Text(text) if text.trim().is_empty() => {}
        MessageContent::Text(text) => block["content"] = text.as_str().into(),
        MessageContent::Parts(parts) => {
            let blocks = blocks(parts, attachments);
            if !blocks.is_empty() {
                block["content"] = blocks.into();
            }
        }
    }
    if result.failed {
        block["is_error"] = true.into();
    }
    block
}

/// Returns whether a block, or one in it, is a file at the provider.
pub(super) fn has_file(block: &Value) -> bool {
    let inner = block.get("content").and_then(Value::as_array);
    block["source"]["type"] == "file" || inner.is_some_and(|inner| inner.iter().any(has_file))
}
