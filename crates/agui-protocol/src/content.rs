//! The content of messages and tool results: plain text, or a list of parts.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::wire_struct::wire_struct;

/// The content of a user message, a tool message or a `TOOL_CALL_RESULT`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum MessageContent {
    /// Plain text.
    Text(String),
    /// Parts in order.
    Parts(Vec<ContentPart>),
}

impl MessageContent {
    /// Returns the text, or the text parts joined in order, without other parts.
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

impl Default for MessageContent {
    fn default() -> Self {
        Self::Text(String::new())
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

/// Serializes a text unchanged, and anything else as JSON.
impl From<Value> for MessageContent {
    fn from(value: Value) -> Self {
        match value {
            Value::String(text) => Self::Text(text),
            value => Self::Text(value.to_string()),
        }
    }
}

impl From<Vec<ContentPart>> for MessageContent {
    fn from(parts: Vec<ContentPart>) -> Self {
        Self::Parts(parts)
    }
}

/// One part of a content.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum ContentPart {
    /// Text.
    Text(#[schema(inline)] TextPart),
    /// An image.
    Image(#[schema(inline)] MediaPart),
    /// Audio.
    Audio(#[schema(inline)] MediaPart),
    /// A video.
    Video(#[schema(inline)] MediaPart),
    /// Another file.
    Document(#[schema(inline)] MediaPart),
}

impl ContentPart {
    /// Creates a text part.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(TextPart::new(text))
    }

    /// Creates an image part.
    pub fn image(source: PartSource) -> Self {
        Self::Image(source.into())
    }

    /// Creates a part of the kind that a MIME type has.
    #[doc(hidden)]
    pub fn media(mime_type: &str, media: MediaPart) -> Self {
        match mime_type.split('/').next() {
            Some("image") => Self::Image(media),
            Some("audio") => Self::Audio(media),
            Some("video") => Self::Video(media),
            _ => Self::Document(media),
        }
    }

    /// Returns the location of the bytes; `None` for a text.
    #[doc(hidden)]
    pub fn source(&self) -> Option<&PartSource> {
        match self {
            Self::Text(_) => None,
            Self::Image(media)
            | Self::Audio(media)
            | Self::Video(media)
            | Self::Document(media) => Some(&media.source),
        }
    }

    /// Returns the metadata.
    pub(super) fn metadata(&self) -> Option<&Value> {
        match self {
            Self::Text(text) => text.metadata.as_ref(),
            Self::Image(media)
            | Self::Audio(media)
            | Self::Video(media)
            | Self::Document(media) => media.metadata.as_ref(),
        }
    }

    /// Returns the id of the file that this server stores.
    #[doc(hidden)]
    pub fn stored_file(&self) -> Option<&str> {
        self.source()?.stored_file()
    }

    /// Returns a part that is not a text, for changing it.
    #[doc(hidden)]
    pub fn media_mut(&mut self) -> Option<&mut MediaPart> {
        match self {
            Self::Text(_) => None,
            Self::Image(media)
            | Self::Audio(media)
            | Self::Video(media)
            | Self::Document(media) => Some(media),
        }
    }
}

wire_struct! {
    decoded
    /// A text part.
    TextPart {
        /// The text.
        text: String,
    } open {
        /// Further data, such as the title of a search result.
        metadata,
    } optional {
        /// Identifies the part within its message. Reserved by the protocol; not used yet.
        id: String,
    }
}

wire_struct! {
    /// An image, audio, video or document part.
    MediaPart {
        /// The location of the bytes.
        source: PartSource,
    } open {
        /// Further data, such as a file name.
        metadata,
    } optional {
        /// Identifies the part within its message. Reserved by the protocol; not used yet.
        id: String,
    }
}

impl From<PartSource> for MediaPart {
    fn from(source: PartSource) -> Self {
        Self::new(source)
    }
}

impl MediaPart {
    /// Returns the name of the file, as clients write it into the metadata.
    #[doc(hidden)]
    pub fn file_name(&self) -> Option<&str> {
        let metadata = self.metadata.as_ref()?;
        let mut names =
            ["filename", "fileName", "name"].iter().filter_map(|key| metadata.get(key)?.as_str());
        names.next().filter(|name| !name.is_empty())
    }
}

/// The location of a media part's bytes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum PartSource {
    /// Inline.
    #[serde(rename_all = "camelCase")]
    Data {
        /// The bytes in base64.
        value: String,
        /// The MIME type.
        mime_type: String,
    },
    /// At a URL.
    #[serde(rename_all = "camelCase")]
    Url {
        /// The URL.
        value: String,
        /// The MIME type, if known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mime_type: Option<String>,
    },
    /// At a model provider, which alone can read it.
    #[serde(rename_all = "camelCase")]
    File {
        /// The provider's opaque file id.
        value: String,
        /// The provider in lower case (`openai`, `anthropic`), if known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        provider: Option<String>,
        /// The MIME type, if known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mime_type: Option<String>,
    },
}

impl PartSource {
    /// The provider of files that this server stores.
    #[doc(hidden)]
    pub const OWN_PROVIDER: &str = "agui-server";

    /// Creates the source of a file that this server stores. It is in stored messages only.
    #[doc(hidden)]
    pub fn from_stored_file(id: &str, mime_type: &str) -> Self {
        Self::File {
            value: id.to_owned(),
            provider: Some(Self::OWN_PROVIDER.to_owned()),
            mime_type: Some(mime_type.to_owned()),
        }
    }

    /// Returns the MIME type, if it is known.
    #[doc(hidden)]
    pub fn mime_type(&self) -> Option<&str> {
        match self {
            Self::Data { mime_type, .. } => Some(mime_type),
            Self::Url { mime_type, .. } | Self::File { mime_type, .. } => mime_type.as_deref(),
        }
    }

    /// Returns the id of the file that this server stores.
    #[doc(hidden)]
    pub fn stored_file(&self) -> Option<&str> {
        match self {
            Self::File { value, provider: Some(provider), .. }
                if provider == Self::OWN_PROVIDER =>
            {
                Some(value)
            }
            _ => None,
        }
    }
}
