//! The content of messages and tool results.

use crate::http::openapi::schema::{
    Describe as _, Named, SchemaMembers as _, any, component, list_of, named, object, one_of, tagged, text, text_of,
};

pub(super) fn schemas() -> Vec<Named> {
    let content = one_of([text().into(), list_of(component("ContentPart")).into()]);
    let part = |kind| object().has("type", text_of([kind])).may_have("id", text()).may_have("metadata", any());
    let media = |kind| part(kind).has("source", component("PartSource"));
    let source = |kind| object().has("type", text_of([kind])).has("value", text());
    let mime_type = || text().says("The MIME type, such as `image/png`.");
    let parts = [
        ("text", "TextPart"),
        ("image", "ImagePart"),
        ("audio", "AudioPart"),
        ("video", "VideoPart"),
        ("document", "DocumentPart"),
    ];
    let sources = [("data", "DataSource"), ("url", "UrlSource"), ("file", "FileSource")];
    vec![
        named("MessageContent", content.says("A text, or a list of parts.")),
        named("ContentPart", tagged("type", parts.map(|(kind, name)| (kind, name.to_owned())))),
        named("TextPart", part("text").has("text", text())),
        named("ImagePart", media("image")),
        named("AudioPart", media("audio")),
        named("VideoPart", media("video")),
        named("DocumentPart", media("document")),
        named("PartSource", tagged("type", sources.map(|(kind, name)| (kind, name.to_owned())))),
        named("DataSource", source("data").has("mimeType", mime_type()).says("`value` is the bytes in base64.")),
        named("UrlSource", source("url").may_have("mimeType", mime_type())),
        named("FileSource", {
            let provider = text().says("The provider that stores the file.");
            source("file").may_have("provider", provider).may_have("mimeType", mime_type())
        }),
    ]
}
