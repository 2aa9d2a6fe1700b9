//! Message content: text, or a list of parts.

use serde::{
    Deserialize,
    de::{Error, MapAccess, SeqAccess},
};
use serde_json::json;

use super::{
    diagnostics::Ignored,
    object::{Members, WireObject, read_object},
    path::JsonPath,
    tagged::Tagged,
    value::{FromJson, from_name, read_items},
};
use crate::{ContentPart, MediaPart, MessageContent, PartSource};

impl<'de> FromJson<'de> for MessageContent {
    const EXPECTED: &'static str = "a string or an array of parts";

    fn from_text<E: Error>(_: JsonPath<'_>, text: &str) -> Result<Option<Self>, E> {
        Ok(Some(text.into()))
    }

    fn from_list<A: SeqAccess<'de>>(
        path: JsonPath<'_>,
        items: A,
    ) -> Result<Option<Self>, A::Error> {
        let mut parts = Vec::new();
        read_items(path, items, |part: Option<ContentPart>| parts.extend(part))?;
        Ok(Some(Self::Parts(parts)))
    }
}

#[derive(Clone, Copy)]
pub(super) enum PartKind {
    Text,
    Media(fn(MediaPart) -> ContentPart),
    /// A part of AG-UI before 1.0, which clients still send.
    Binary,
}

impl Tagged for ContentPart {
    const TAG: &'static str = "type";
    const IGNORED: fn(&mut Ignored) -> &mut usize = |ignored| &mut ignored.parts;
    type Kind = PartKind;

    fn kind(tag: &str) -> Option<PartKind> {
        Some(match tag {
            "text" => PartKind::Text,
            "image" => PartKind::Media(Self::Image),
            "audio" => PartKind::Media(Self::Audio),
            "video" => PartKind::Media(Self::Video),
            "document" => PartKind::Media(Self::Document),
            "binary" => PartKind::Binary,
            _ => return None,
        })
    }

    fn read<'de, A: MapAccess<'de>>(
        kind: PartKind,
        members: Members<'_, 'de, A>,
    ) -> Result<Option<Self>, A::Error> {
        let part = match kind {
            PartKind::Text => Self::Text(WireObject::read(members)?),
            PartKind::Media(wrap) => wrap(read_object!(members => MediaPart {
                recognized source,
                optional metadata,
                optional id,
            })),
            PartKind::Binary => {
                let path = members.path;
                let part = read_object!(members => BinaryPart {
                    required mime_type,
                    optional data,
                    optional url,
                    optional id,
                    optional filename,
                });
                let part = part.into_media();
                part.ok_or_else(|| path.malformed("a binary part needs data, url or id"))?
            }
        };
        Ok(Some(part))
    }
}

struct BinaryPart {
    mime_type: String,
    data: Option<String>,
    url: Option<String>,
    id: Option<String>,
    filename: Option<String>,
}

impl BinaryPart {
    fn into_media(self) -> Option<ContentPart> {
        let filled = |text: Option<String>| text.filter(|text| !text.is_empty());
        let mime_type = self.mime_type.clone();
        let source = if let Some(value) = filled(self.data) {
            PartSource::Data { value, mime_type }
        } else if let Some(value) = filled(self.url) {
            PartSource::Url { value, mime_type: Some(mime_type) }
        } else {
            PartSource::File { value: filled(self.id)?, provider: None, mime_type: Some(mime_type) }
        };
        let metadata = filled(self.filename).map(|filename| json!({ "filename": filename }));
        Some(ContentPart::media(&self.mime_type, MediaPart { id: None, source, metadata }))
    }
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum SourceKind {
    Data,
    Url,
    File,
}

impl Tagged for PartSource {
    const TAG: &'static str = "type";
    const IGNORED: fn(&mut Ignored) -> &mut usize = |ignored| &mut ignored.parts;
    type Kind = SourceKind;

    fn kind(tag: &str) -> Option<SourceKind> {
        from_name(tag)
    }

    fn read<'de, A: MapAccess<'de>>(
        kind: SourceKind,
        members: Members<'_, 'de, A>,
    ) -> Result<Option<Self>, A::Error> {
        Ok(Some(match kind {
            SourceKind::Data => {
                read_object!(members => PartSource::Data { required value, required mime_type, })
            }
            SourceKind::Url => {
                read_object!(members => PartSource::Url { required value, optional mime_type, })
            }
            SourceKind::File => read_object!(members => PartSource::File {
                required value,
                optional provider,
                optional mime_type,
            }),
        }))
    }
}
