//! Estimates how many tokens a request has, without the provider's tokenizer. The estimate is corrected by the count that
//! the provider reports ([`ModelWindow`](super::model_window::ModelWindow)).

use serde_json::Value;

use crate::model::{Block, ModelRequest, ModelStep};
use agui_protocol::{ContentPart, MediaPart, MessageContent, PartSource};
use agui_tools::ToolSpec;

/// Role markers and separators of a step, a call or a tool.
const OVERHEAD: u64 = 6;
/// https://platform.claude.com/docs/en/build-with-claude/vision: about 1,600 tokens for an image of the usual size.
const IMAGE: u64 = 1_600;
/// About a minute: https://ai.google.dev/gemini-api/docs/audio, 32 tokens a second.
const AUDIO: u64 = 2_000;
/// About a minute: https://ai.google.dev/gemini-api/docs/video-understanding, 300 tokens a second.
const VIDEO: u64 = 18_000;
/// About five pages: https://platform.claude.com/docs/en/build-with-claude/pdf-support, 1,500 to 3,000 tokens a page.
const DOCUMENT: u64 = 10_000;

/// Returns the tokens of everything that a request sends.
pub(crate) fn request_tokens(request: &ModelRequest) -> u64 {
    frame_tokens(request) + request.steps.iter().map(step_tokens).sum::<u64>()
}

/// Returns whether the estimate counts an image, a recording or a document, whose tokens depend on more than the request
/// shows.
pub(crate) fn is_rough(request: &ModelRequest) -> bool {
    request.steps.iter().any(|step| match step {
        ModelStep::User(parts) => parts.iter().any(is_media),
        ModelStep::ToolResults(results) => results.iter().any(|result| match &result.content {
            MessageContent::Text(_) => false,
            MessageContent::Parts(parts) => parts.iter().any(is_media),
        }),
        ModelStep::Instructions(_) | ModelStep::Assistant(_) => false,
    })
}

/// Returns the tokens of a request without its conversation.
pub(super) fn frame_tokens(request: &ModelRequest) -> u64 {
    let instructions = request.system.iter().chain(&request.current);
    let instructions: u64 = instructions.map(|text| OVERHEAD + text_tokens(text)).sum();
    let schema = request
        .response_schema
        .as_deref()
        .map_or(0, |schema| json_tokens(&Value::Object(schema.clone())));
    instructions + schema + request.tools.iter().map(tool_tokens).sum::<u64>()
}

pub(crate) fn step_tokens(step: &ModelStep) -> u64 {
    OVERHEAD
        + match step {
            ModelStep::Instructions(text) => text_tokens(text),
            ModelStep::User(parts) => parts.iter().map(part_tokens).sum(),
            ModelStep::Assistant(blocks) => blocks.iter().map(block_tokens).sum(),
            ModelStep::ToolResults(results) => {
                results.iter().map(|result| OVERHEAD + content_tokens(&result.content)).sum()
            }
        }
}

/// English has about 4 characters a token, JSON about 3, Chinese and Japanese about 1.
pub(super) fn text_tokens(text: &str) -> u64 {
    let thousandths: u64 = text.chars().map(weight).sum();
    thousandths.div_ceil(1000)
}

/// Thousandths of a token.
fn weight(c: char) -> u64 {
    match c {
        'a'..='z' | 'A'..='Z' | ' ' => 240,
        '0'..='9' => 350,
        '\0'..='\u{7f}' => 450,
        // Latin with accents, Greek, Cyrillic, Hebrew, Arabic.
        '\u{80}'..='\u{7ff}' => 450,
        // Most ideographs, kana and Hangul are one token each; Indic and other scripts are about as dense.
        '\u{800}'..='\u{ffff}' => 900,
        // Emoji and rare characters are two or three bytes-level tokens.
        _ => 2000,
    }
}

fn block_tokens(block: &Block) -> u64 {
    match block {
        Block::Text(text) => text_tokens(text),
        // Providers bill an artefact as the text that it stands for, which is at most as long.
        Block::Reasoning(reasoning) => match &reasoning.artefact {
            Some(artefact) if reasoning.text.is_empty() => text_tokens(artefact) / 2,
            _ => text_tokens(&reasoning.text),
        },
        Block::Call(call) => {
            OVERHEAD + text_tokens(&call.function.name) + text_tokens(&call.function.arguments)
        }
    }
}

fn content_tokens(content: &MessageContent) -> u64 {
    match content {
        MessageContent::Text(text) => text_tokens(text),
        MessageContent::Parts(parts) => parts.iter().map(part_tokens).sum(),
    }
}

fn part_tokens(part: &ContentPart) -> u64 {
    match part {
        ContentPart::Text(text) => text_tokens(&text.text),
        ContentPart::Image(_) => IMAGE,
        ContentPart::Audio(_) => AUDIO,
        ContentPart::Video(_) => VIDEO,
        // Texts are sent as texts: 3 bytes for each 4 characters of base64, and about 3 bytes a token.
        ContentPart::Document(document) => {
            text_data(document).map_or(DOCUMENT, |base64| base64.len() as u64 / 4)
        }
    }
}

pub(super) fn is_media(part: &ContentPart) -> bool {
    match part {
        ContentPart::Text(_) => false,
        ContentPart::Document(document) => text_data(document).is_none(),
        ContentPart::Image(_) | ContentPart::Audio(_) | ContentPart::Video(_) => true,
    }
}

/// Returns the data of a document that is a text.
fn text_data(document: &MediaPart) -> Option<&str> {
    match &document.source {
        PartSource::Data { value, mime_type } if is_text(mime_type) => Some(value),
        _ => None,
    }
}

fn is_text(mime_type: &str) -> bool {
    mime_type.starts_with("text/")
        || ["json", "xml", "yaml", "csv"].iter().any(|kind| mime_type.ends_with(kind))
}

fn tool_tokens(tool: &ToolSpec) -> u64 {
    let texts = text_tokens(&tool.name) + text_tokens(&tool.description);
    OVERHEAD + texts + json_tokens(&tool.parameters)
}

fn json_tokens(value: &Value) -> u64 {
    text_tokens(&value.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_have_their_own_density() {
        let english = "The quick brown fox jumps over the lazy dog, and then it sleeps for the rest of the day.";
        // Counted with OpenAI's tokenizer o200k: 21 and 12 tokens.
        assert!((18..=26).contains(&text_tokens(english)), "{}", text_tokens(english));
        let chinese = "敏捷的棕色狐狸跳过懒狗,然后睡觉。";
        assert!((11..=20).contains(&text_tokens(chinese)), "{}", text_tokens(chinese));
        assert_eq!(text_tokens(""), 0);
        assert!(text_tokens("👋") == 2 && text_tokens("a") == 1);
    }

    #[test]
    fn attachments_are_counted_by_their_kind_and_texts_by_their_length() {
        let source = |mime: &str, bytes: usize| PartSource::Data {
            value: "A".repeat(bytes),
            mime_type: mime.to_owned(),
        };
        let document =
            |mime, bytes| part_tokens(&ContentPart::Document(source(mime, bytes).into()));
        assert_eq!(part_tokens(&ContentPart::image(source("image/png", 4_000_000))), IMAGE);
        assert_eq!(document("application/pdf", 4_000_000), DOCUMENT);
        assert_eq!(document("text/csv", 4_000), 1_000);
        assert_eq!(document("application/ld+json", 4_000), 1_000);
    }

    #[test]
    fn all_parts_of_a_request_count() {
        let long = || "word ".repeat(100);
        let mut request = ModelRequest::default();
        let mut last = request_tokens(&request);
        let mut grows = |request: &ModelRequest| {
            let now = request_tokens(request);
            assert!(now > last + 90, "{now} after {last}");
            last = now;
        };
        request.system.push(long());
        grows(&request);
        request.current.push(long());
        grows(&request);
        request.steps.push(ModelStep::User(vec![ContentPart::text(long())]));
        grows(&request);
        request.steps.push(ModelStep::Assistant(vec![Block::Text(long())]));
        grows(&request);
        let tool = ToolSpec { name: "t".to_owned(), description: long(), parameters: Value::Null };
        request.tools = vec![tool].into();
        grows(&request);
    }
}
