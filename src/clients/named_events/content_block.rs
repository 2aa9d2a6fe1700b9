//! The content blocks of a message, in the form of LangChain's `content_blocks`.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::InvalidRequest;
use agui_protocol::{ContentPart, MediaPart, PartSource};

/// One block of a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "type", rename_all = "lowercase")]
#[schema(as = NamedEventBlock)]
#[non_exhaustive]
pub enum ContentBlock {
    /// Text.
    Text(#[schema(inline)] TextBlock),
    /// An image.
    Image(#[schema(inline)] MediaBlock),
    /// An audio recording.
    Audio(#[schema(inline)] MediaBlock),
    /// A video.
    Video(#[schema(inline)] MediaBlock),
    /// Any other file.
    File(#[schema(inline)] MediaBlock),
    /// Reasoning of a model.
    Reasoning(#[schema(inline)] ReasoningBlock),
}

/// A text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TextBlock {
    /// The text.
    pub text: String,
}

/// Bytes: either at a URL, or in base64 together with their MIME type.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MediaBlock {
    /// The URL of the bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The bytes in base64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<String>,
    /// The MIME type; required with `data`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
}

/// An image.
pub type ImageBlock = MediaBlock;
/// An audio recording.
pub type AudioBlock = MediaBlock;

/// Reasoning of a model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ReasoningBlock {
    /// The text of the reasoning.
    pub reasoning: String,
}

impl TextBlock {
    /// A text.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into() }
    }
}

impl ReasoningBlock {
    /// Reasoning of a model.
    pub fn new(reasoning: impl Into<String>) -> Self {
        Self { reasoning: reasoning.into() }
    }
}

impl MediaBlock {
    /// Bytes at a URL.
    pub fn url(url: impl Into<String>) -> Self {
        Self { url: Some(url.into()), ..Self::default() }
    }

    /// Bytes in base64, with their MIME type.
    pub fn base64(data: impl Into<String>, mime_type: impl Into<String>) -> Self {
        Self { url: None, data: Some(data.into()), mime_type: Some(mime_type.into()) }
    }

    fn to_source(&self, path: &str) -> Result<PartSource, InvalidRequest> {
        let invalid = |member: &str, expected: &str| {
            Err(InvalidRequest::new(format!("{path}{member}"), expected))
        };
        match (&self.url, &self.data, &self.mime_type) {
            (Some(_), Some(_), _) => invalid("", "either `url` or `data`, not both"),
            (Some(url), None, _) if url.trim().is_empty() => invalid(".url", "a URL"),
            (Some(url), None, mime_type) => Ok(PartSource::Url {
                value: url.clone(),
                mime_type: mime_type.clone().filter(|t| !t.is_empty()),
            }),
            (None, Some(data), Some(mime_type)) if !mime_type.trim().is_empty() => {
                if data.is_empty() || BASE64_STANDARD.decode(data).is_err() {
                    return invalid(".data", "base64 with its padding");
                }
                Ok(PartSource::Data { value: data.clone(), mime_type: mime_type.clone() })
            }
            (None, Some(_), _) => {
                invalid(".mime_type", "the MIME type of `data`, such as image/png")
            }
            (None, None, _) => invalid("", "a `url`, or `data` with its `mime_type`"),
        }
    }
}

impl ContentBlock {
    pub(super) fn read(block: &Value, path: &str) -> Result<Self, InvalidRequest> {
        const TYPES: [&str; 6] = ["text", "image", "audio", "video", "file", "reasoning"];
        let block_type = block.get("type").and_then(Value::as_str).unwrap_or_default();
        if !TYPES.contains(&block_type) {
            return Err(InvalidRequest::new(
                format!("{path}.type"),
                format!("one of {}", TYPES.join(", ")),
            ));
        }
        Self::deserialize(block).map_err(|error| InvalidRequest::new(path, error.to_string()))
    }

    /// Returns the block as a part of an AG-UI message; `None` for reasoning, which is not a part of a message there.
    ///
    /// # Errors
    /// Returns an error at or below `path` if a media block names no bytes, or names them twice.
    pub fn to_part(&self, path: &str) -> Result<Option<ContentPart>, InvalidRequest> {
        let media = |block: &MediaBlock| block.to_source(path).map(MediaPart::from);
        Ok(Some(match self {
            Self::Text(block) => ContentPart::text(block.text.clone()),
            Self::Image(block) => ContentPart::Image(media(block)?),
            Self::Audio(block) => ContentPart::Audio(media(block)?),
            Self::Video(block) => ContentPart::Video(media(block)?),
            Self::File(block) => ContentPart::Document(media(block)?),
            Self::Reasoning(_) => return Ok(None),
        }))
    }

    /// Returns the block in LangChain's form.
    pub fn to_langchain_format(&self) -> Value {
        serde_json::to_value(self).unwrap_or_default()
    }
}
