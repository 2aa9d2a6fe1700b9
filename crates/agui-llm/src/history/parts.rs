//! The content parts of a conversation, in the one form that providers get.

use serde_json::Value;

use crate::providers::{attachments, wire};
use agui_agent::files::inline_data;
use agui_base::text::essence;
use agui_protocol::{
    ContentPart, JsonObject, MessageContent, PartSource,
    file_activity::{FILE_NAME, FILE_TYPE, FILE_URL},
};

const SHARED: &str = "Note of the server, not of the user: you or one of your tools have handed a file over to the user";

/// Returns the parts of a content; a text is one part.
pub(super) fn parts(content: &MessageContent) -> Vec<ContentPart> {
    match content {
        MessageContent::Text(text) => vec![ContentPart::text(text.as_str())],
        MessageContent::Parts(parts) => parts.iter().map(normalised).collect(),
    }
}

/// Returns a content as text, in which words stand for files. `text` makes what is shown of each text.
pub(crate) fn content_as_text(
    content: &MessageContent,
    mut text: impl FnMut(&str) -> String,
) -> String {
    match content {
        MessageContent::Text(content) => text(content),
        MessageContent::Parts(parts) => parts_as_text(parts, text),
    }
}

/// Returns parts as text, like [`content_as_text`].
pub(crate) fn parts_as_text(parts: &[ContentPart], mut text: impl FnMut(&str) -> String) -> String {
    let texts = parts
        .iter()
        .map(|part| wire::media(part).map_or_else(&mut text, |(kind, _)| wire::placeholder(kind)));
    texts.collect::<Vec<_>>().join(" ")
}

/// Returns the texts of a content, including its text files and the names of its files.
pub(crate) fn texts(content: &MessageContent) -> String {
    let MessageContent::Parts(parts) = content else { return content.text().into_owned() };
    let mut texts = String::new();
    for part in parts {
        match wire::media(part) {
            Err(text) => texts.push_str(text),
            Ok(_) => {
                let part = normalised(part);
                let Ok((_, media)) = wire::media(&part) else { continue };
                texts.push_str(media.file_name().unwrap_or_default());
                texts
                    .extend(attachments::text_of(media).and_then(Result::ok).map(|(text, _)| text));
            }
        }
    }
    texts
}

/// Returns a note of a file that was handed over to the user, and its data if it is an image.
pub(super) fn shared_file(content: &JsonObject) -> Vec<ContentPart> {
    let text = |name: &str| content.get(name).and_then(Value::as_str);
    let mime_type = text(FILE_TYPE).unwrap_or("a file");
    let name =
        text(FILE_NAME).map(|name| format!("\"{}\", ", name.replace(['"', '\n', '\r'], " ")));
    let image = text(FILE_URL).filter(|url| url.starts_with("data:image/")).map(|url| {
        let source = PartSource::Url {
            value: url.to_owned(),
            mime_type: text(FILE_TYPE).map(str::to_owned),
        };
        normalised(&ContentPart::image(source))
    });
    let place = if image.is_some() { " It is the next attachment." } else { "" };
    let note = format!("[{SHARED}: {}{mime_type}.{place}]", name.unwrap_or_default());
    std::iter::once(ContentPart::text(note)).chain(image).collect()
}

/// Returns a part with the kind of its MIME type. A `data:` URL becomes data, also if a page sent
/// it as data. The type of data is read from its bytes.
fn normalised(part: &ContentPart) -> ContentPart {
    let Ok((kind, media)) = wire::media(part) else { return part.clone() };
    let mut media = media.clone();
    if let Some(data) = inline_data::data_of_url(&media.source) {
        media.source = data;
    }
    inline_data::correct(&mut media.source);
    let mime_type = media.source.mime_type().map(essence).unwrap_or_default();
    let has_kind =
        matches!(mime_type.split('/').next(), Some("image" | "audio" | "video" | "text"));
    ContentPart::media(
        if has_kind || mime_type == "application/pdf" { &mime_type } else { kind },
        media,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use agui_protocol::MediaPart;

    fn url(value: &str, mime_type: Option<&str>) -> MediaPart {
        PartSource::Url { value: value.to_owned(), mime_type: mime_type.map(str::to_owned) }.into()
    }

    fn inline(value: &str, mime_type: &str) -> MediaPart {
        PartSource::Data { value: value.to_owned(), mime_type: mime_type.to_owned() }.into()
    }

    #[test]
    fn the_data_of_a_data_url_is_data() {
        for (address, mime_type, expected) in [
            ("data:image/png;base64,AA==", None, inline("AA==", "image/png")),
            ("DATA:image/png;base64,AA%3D%3D", None, inline("AA==", "image/png")),
            ("data:;base64,AA==", Some("image/webp"), inline("AA==", "image/webp")),
            ("data:image/svg+xml,%3Csvg/%3E", None, inline("PHN2Zy8+", "image/svg+xml")),
        ] {
            let part = normalised(&ContentPart::Image(url(address, mime_type)));
            assert_eq!(part, ContentPart::Image(expected), "{address}");
        }
        let as_data = ContentPart::Image(inline("data:image/png;base64,iVBORw0KGgo", "image/jpeg"));
        assert_eq!(normalised(&as_data), ContentPart::Image(inline("iVBORw0KGgo=", "image/png")));
        let text = ContentPart::Document(url("data:text/plain;charset=utf-8;base64,YSxi", None));
        assert_eq!(
            normalised(&text),
            ContentPart::Document(inline("YSxi", "text/plain;charset=utf-8"))
        );
        let plain = ContentPart::Document(url("data:,a,b", None));
        assert_eq!(normalised(&plain), ContentPart::Document(inline("YSxi", "text/plain")));
        for other in ["https://a/data:,b", "data:no-comma", "a,b", ""] {
            let part = ContentPart::Image(url(other, None));
            assert_eq!(normalised(&part), part, "{other}");
        }
    }

    #[test]
    fn the_kind_of_a_part_is_that_of_its_mime_type() {
        for (mime_type, kind) in [
            ("IMAGE/png; x=y", ContentPart::Image as fn(MediaPart) -> ContentPart),
            ("audio/wav", ContentPart::Audio),
            ("video/mp4", ContentPart::Video),
            ("text/csv", ContentPart::Document),
            ("application/pdf", ContentPart::Document),
        ] {
            for given in
                [ContentPart::Image, ContentPart::Audio, ContentPart::Video, ContentPart::Document]
            {
                let media = inline("AA==", mime_type);
                assert_eq!(normalised(&given(media.clone())), kind(media), "{mime_type}");
                let media = url("https://a/b", Some(mime_type));
                assert_eq!(normalised(&given(media.clone())), kind(media), "{mime_type}");
            }
        }
        for given in
            [ContentPart::Image, ContentPart::Audio, ContentPart::Video, ContentPart::Document]
        {
            for media in
                [inline("AA==", ""), inline("AA==", "application/zip"), url("https://a/b", None)]
            {
                assert_eq!(normalised(&given(media.clone())), given(media));
            }
        }
    }
}
