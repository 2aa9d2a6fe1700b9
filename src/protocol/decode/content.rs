//! Message content: text, or parts, each with the place its bytes are at.

use std::fmt;

use serde::de::{self, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Value, json};

use super::{
    at::At,
    union::{EachOneOf, OneOf, ReadValue, Union},
    value::{List, OptionalJson, Text, refuse},
};
use crate::protocol::{ContentPart, MediaPart, MessageContent, PartSource, TextPart};

/// Text or parts; `null` reads as absent.
pub(super) struct Content<'a>(pub(super) At<'a>);

impl<'de> DeserializeSeed<'de> for Content<'_> {
    type Value = Option<MessageContent>;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Content<'_> {
    type Value = Option<MessageContent>;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string or an array")
    }
    fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Some(text.into()))
    }
    fn visit_string<E: de::Error>(self, text: String) -> Result<Self::Value, E> {
        Ok(Some(text.into()))
    }
    fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<Self::Value, A::Error> {
        let parts = List(self.0, EachOneOf::<Part>::OF).visit_seq(items)?;
        Ok(parts.map(MessageContent::Parts))
    }
    fn visit_unit<E: de::Error>(self) -> Result<Self::Value, E> {
        Ok(None)
    }
    refuse!("a string or an array of parts"; bool number object);
}

#[derive(Clone, Copy, PartialEq)]
enum PartKind {
    Text,
    Image,
    Audio,
    Video,
    Document,
    /// Retired, and in the documents this product was ordered from: `{type, mimeType, id | url | data, filename}`.
    Binary,
}

#[derive(Default)]
struct Part {
    id: Option<String>,
    text: Option<String>,
    /// `Some(None)` is a source of an unknown kind.
    source: Option<Option<PartSource>>,
    metadata: Option<Value>,
    mime_type: Option<String>,
    url: Option<String>,
    data: Option<String>,
    filename: Option<String>,
}

impl<'de> Union<'de> for Part {
    type Value = ContentPart;
    type Kind = PartKind;
    const MEMBERS: &'static [&'static str] =
        &["type", "id", "text", "source", "metadata", "mimeType", "url", "data", "filename"];

    fn kind(text: &str) -> Option<PartKind> {
        Some(match text {
            "text" => PartKind::Text,
            "image" => PartKind::Image,
            "audio" => PartKind::Audio,
            "video" => PartKind::Video,
            "document" => PartKind::Document,
            "binary" => PartKind::Binary,
            _ => return None,
        })
    }

    fn describes(kind: PartKind, member: &str) -> bool {
        match member {
            "id" => true,
            "text" => kind == PartKind::Text,
            "source" => !matches!(kind, PartKind::Text | PartKind::Binary),
            "metadata" => kind != PartKind::Binary,
            _ => kind == PartKind::Binary,
        }
    }

    fn set<R: ReadValue<'de>>(&mut self, _: PartKind, member: &str, at: At<'_>, value: R) -> Result<(), R::Error> {
        match member {
            "id" => self.id = value.read(Text::at(at))?,
            "text" => self.text = value.read(Text::at(at))?,
            "source" => self.source = Some(value.read(OneOf::<Source>::at(at))?),
            "metadata" => self.metadata = value.read(OptionalJson(at))?,
            "mimeType" => self.mime_type = value.read(Text::at(at))?,
            "url" => self.url = value.read(Text::at(at))?,
            "data" => self.data = value.read(Text::at(at))?,
            _ => self.filename = value.read(Text::at(at))?,
        }
        Ok(())
    }

    fn build<E: de::Error>(self, kind: PartKind, at: At<'_>) -> Result<Option<ContentPart>, E> {
        let wrap = match kind {
            PartKind::Text => {
                let text = at.required(self.text, "text")?;
                return Ok(Some(ContentPart::Text(TextPart { id: self.id, text, metadata: self.metadata })));
            }
            PartKind::Binary => return self.build_binary(at).map(Some),
            PartKind::Image => ContentPart::Image,
            PartKind::Audio => ContentPart::Audio,
            PartKind::Video => ContentPart::Video,
            PartKind::Document => ContentPart::Document,
        };
        // A part whose source is unknown goes as a whole: without one it would be malformed.
        let source = at.required(self.source, "source")?;
        Ok(source.map(|source| wrap(MediaPart { id: self.id, source, metadata: self.metadata })))
    }

    fn set_id(&mut self, id: &str) {
        self.id = Some(id.into());
    }

    fn note_unknown(at: &At<'_>, kind: &str) {
        at.log.drop_part(at, kind);
    }
}

impl Part {
    /// Reads a retired part as its modern kind, by MIME type; a file name is kept in the metadata.
    fn build_binary<E: de::Error>(self, at: At<'_>) -> Result<ContentPart, E> {
        let mime_type = at.required(self.mime_type, "mimeType")?;
        let wrap = match mime_type.split('/').next() {
            Some("image") => ContentPart::Image,
            Some("audio") => ContentPart::Audio,
            Some("video") => ContentPart::Video,
            _ => ContentPart::Document,
        };
        let filled = |text: Option<String>| text.filter(|text| !text.is_empty());
        let source = if let Some(value) = filled(self.data) {
            PartSource::Data { value, mime_type }
        } else if let Some(value) = filled(self.url) {
            PartSource::Url { value, mime_type: Some(mime_type) }
        } else if let Some(value) = filled(self.id) {
            PartSource::File { value, provider: None, mime_type: Some(mime_type) }
        } else {
            return Err(at.fault("a binary part needs data, url or id"));
        };
        let metadata = filled(self.filename).map(|filename| json!({ "filename": filename }));
        Ok(wrap(MediaPart { id: None, source, metadata }))
    }
}

#[derive(Clone, Copy, PartialEq)]
enum SourceKind {
    Data,
    Url,
    File,
}

#[derive(Default)]
struct Source {
    value: Option<String>,
    mime_type: Option<String>,
    provider: Option<String>,
}

impl<'de> Union<'de> for Source {
    type Value = PartSource;
    type Kind = SourceKind;
    const MEMBERS: &'static [&'static str] = &["type", "value", "mimeType", "provider"];

    fn kind(text: &str) -> Option<SourceKind> {
        Some(match text {
            "data" => SourceKind::Data,
            "url" => SourceKind::Url,
            "file" => SourceKind::File,
            _ => return None,
        })
    }

    fn describes(kind: SourceKind, member: &str) -> bool {
        member != "provider" || kind == SourceKind::File
    }

    fn set<R: ReadValue<'de>>(&mut self, _: SourceKind, member: &str, at: At<'_>, value: R) -> Result<(), R::Error> {
        match member {
            "value" => self.value = value.read(Text::at(at))?,
            "mimeType" => self.mime_type = value.read(Text::at(at))?,
            _ => self.provider = value.read(Text::at(at))?,
        }
        Ok(())
    }

    fn build<E: de::Error>(self, kind: SourceKind, at: At<'_>) -> Result<Option<PartSource>, E> {
        let value = at.required(self.value, "value")?;
        Ok(Some(match kind {
            SourceKind::Data => PartSource::Data { value, mime_type: at.required(self.mime_type, "mimeType")? },
            SourceKind::Url => PartSource::Url { value, mime_type: self.mime_type },
            SourceKind::File => PartSource::File { value, provider: self.provider, mime_type: self.mime_type },
        }))
    }

    fn set_id(&mut self, _: &str) {}

    fn note_unknown(at: &At<'_>, kind: &str) {
        at.log.drop_part(at, kind);
    }
}
