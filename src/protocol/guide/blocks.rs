//! What a message carries, block by block.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::request::Fault;
use crate::protocol::{ContentPart, MediaPart, PartSource};

/// One block of a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
#[non_exhaustive]
pub enum ContentBlock {
    /// Text.
    Text(TextBlock),
    /// An image.
    Image(MediaBlock),
    /// Sound.
    Audio(MediaBlock),
    /// A video.
    Video(MediaBlock),
    /// Any other file.
    File(MediaBlock),
    /// What a model thought.
    Reasoning(ReasoningBlock),
}

/// A text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TextBlock {
    /// The text.
    pub text: String,
}

/// Bytes: at a URL, or in base64 with their type.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MediaBlock {
    /// Where they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The bytes themselves, in base64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<String>,
    /// What they are; needed with `data`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
}

/// An image.
pub type ImageBlock = MediaBlock;
/// Sound.
pub type AudioBlock = MediaBlock;

/// What a model thought.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReasoningBlock {
    /// The thought.
    pub reasoning: String,
}

impl TextBlock {
    /// A text.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into() }
    }
}

impl ReasoningBlock {
    /// A thought.
    pub fn new(reasoning: impl Into<String>) -> Self {
        Self { reasoning: reasoning.into() }
    }
}

impl MediaBlock {
    /// What is at a URL.
    pub fn url(url: impl Into<String>) -> Self {
        Self { url: Some(url.into()), ..Self::default() }
    }

    /// Bytes in base64, and what they are.
    pub fn base64(data: impl Into<String>, mime_type: impl Into<String>) -> Self {
        Self { url: None, data: Some(data.into()), mime_type: Some(mime_type.into()) }
    }

    /// Where AG-UI finds the bytes.
    fn source(&self, path: &str) -> Result<PartSource, Fault> {
        match (&self.url, &self.data, &self.mime_type) {
            (Some(_), Some(_), _) => Err(Fault::new(path, "either `url` or `data`, not both")),
            (Some(url), None, _) if url.trim().is_empty() => Err(Fault::new(format!("{path}.url"), "a URL")),
            (Some(url), None, mime_type) => {
                Ok(PartSource::Url { value: url.clone(), mime_type: mime_type.clone().filter(|t| !t.is_empty()) })
            }
            (None, Some(data), Some(mime_type)) if !mime_type.trim().is_empty() => {
                if data.is_empty() || BASE64_STANDARD.decode(data).is_err() {
                    return Err(Fault::new(format!("{path}.data"), "base64, with its padding"));
                }
                Ok(PartSource::Data { value: data.clone(), mime_type: mime_type.clone() })
            }
            (None, Some(_), _) => Err(Fault::new(format!("{path}.mime_type"), "what the data is, such as image/png")),
            (None, None, _) => Err(Fault::new(path, "a `url`, or `data` with its `mime_type`")),
        }
    }
}

impl ContentBlock {
    /// Reads a block of a request.
    pub(super) fn read(block: &Value, path: &str) -> Result<Self, Fault> {
        const TYPES: &str = "one of text, image, audio, video, file, reasoning";
        let kind = block.get("type").and_then(Value::as_str).unwrap_or_default();
        if !["text", "image", "audio", "video", "file", "reasoning"].contains(&kind) {
            return Err(Fault::new(format!("{path}.type"), TYPES));
        }
        Self::deserialize(block).map_err(|error| Fault::new(path, error.to_string()))
    }

    /// The block as a part of an AG-UI message; `None` for a thought, which is no part of one.
    ///
    /// # Errors
    /// A [`Fault`] at `path` when bytes cannot be had.
    pub fn to_part(&self, path: &str) -> Result<Option<ContentPart>, Fault> {
        let media = |block: &MediaBlock| block.source(path).map(MediaPart::from);
        Ok(Some(match self {
            Self::Text(block) => ContentPart::text(block.text.clone()),
            Self::Image(block) => ContentPart::Image(media(block)?),
            Self::Audio(block) => ContentPart::Audio(media(block)?),
            Self::Video(block) => ContentPart::Video(media(block)?),
            Self::File(block) => ContentPart::Document(media(block)?),
            Self::Reasoning(_) => return Ok(None),
        }))
    }

    /// The block in the form of LangChain's `content_blocks`, which is the guide's own.
    pub fn to_langchain_format(&self) -> Value {
        serde_json::to_value(self).unwrap_or_default()
    }
}

/// The thoughts among content blocks, put together; `None` when there are none.
pub fn extract_reasoning(blocks: &[Value]) -> Option<String> {
    let thoughts = blocks.iter().filter(|block| block.get("type").is_some_and(|kind| kind == "reasoning"));
    let text: String = thoughts.filter_map(|block| block.get("reasoning")?.as_str()).collect();
    (!text.is_empty()).then_some(text)
}
