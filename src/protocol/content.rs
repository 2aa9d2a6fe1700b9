//! What a message or a tool result carries: plain text, or an ordered list of parts.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::is_absent;

/// The content of a user message, a tool message or a `TOOL_CALL_RESULT`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum MessageContent {
    /// Plain text.
    Text(String),
    /// An ordered list of parts.
    Parts(Vec<ContentPart>),
}

impl MessageContent {
    /// The text, or the text parts joined in order; other parts are left out.
    pub fn text(&self) -> std::borrow::Cow<'_, str> {
        match self {
            Self::Text(text) => text.as_str().into(),
            Self::Parts(parts) => {
                let texts = parts.iter().filter_map(|part| match part {
                    ContentPart::Text(text) => Some(text.text.as_str()),
                    _ => None,
                });
                texts.collect::<String>().into()
            }
        }
    }
}

impl From<&str> for MessageContent {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for MessageContent {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<Vec<ContentPart>> for MessageContent {
    fn from(parts: Vec<ContentPart>) -> Self {
        Self::Parts(parts)
    }
}

/// One part of a message body.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
#[non_exhaustive]
pub enum ContentPart {
    /// Text.
    Text(TextPart),
    /// An image.
    Image(MediaPart),
    /// Sound.
    Audio(MediaPart),
    /// A video.
    Video(MediaPart),
    /// Any other file.
    Document(MediaPart),
}

impl ContentPart {
    /// A text part.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(TextPart { text: text.into(), id: None, metadata: None })
    }

    /// An image part.
    pub fn image(source: PartSource) -> Self {
        Self::Image(source.into())
    }
}

/// A text part.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TextPart {
    /// Identifies the part within its message; reserved by the protocol, nothing reads it yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The text.
    pub text: String,
    /// Anything more about the part, such as a search hit's title.
    #[serde(default, skip_serializing_if = "is_absent")]
    pub metadata: Option<Value>,
}

/// An image, audio, video or document part.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MediaPart {
    /// Identifies the part within its message; reserved by the protocol, nothing reads it yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Where the bytes are.
    pub source: PartSource,
    /// Anything more about the part, such as a file name.
    #[serde(default, skip_serializing_if = "is_absent")]
    pub metadata: Option<Value>,
}

impl From<PartSource> for MediaPart {
    fn from(source: PartSource) -> Self {
        Self { id: None, source, metadata: None }
    }
}

/// Where a media part's bytes are.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase", rename_all_fields = "camelCase")]
pub enum PartSource {
    /// Carried inline.
    Data {
        /// The bytes, base64-encoded.
        value: String,
        /// What they are.
        mime_type: String,
    },
    /// Fetchable by URL.
    Url {
        /// The URL.
        value: String,
        /// What is there, when known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mime_type: Option<String>,
    },
    /// Already at the model provider, under a handle that only this provider can read.
    File {
        /// The handle, opaque.
        value: String,
        /// Who issued it, in lower case (`openai`, `anthropic`), when known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        provider: Option<String>,
        /// What the file is, when known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mime_type: Option<String>,
    },
}
