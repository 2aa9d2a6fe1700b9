//! Converts the result of an MCP call to the content of a tool message. It reads JSON and not the types of the protocol
//! library, so that a block of an unknown type costs that block only.

use std::slice;

use serde_json::Value;

use agui_protocol::{ContentPart, MessageContent, PartSource};
use agui_tools::{ToolError, host::Secrets};

/// A result can have several 100,000 empty blocks, each of which would be a part.
const MAX_PARTS: usize = 1000;

/// Converts a result, without the secrets. Content beyond `limit` bytes is cut or left out, with a note.
pub(super) fn to_content(
    response: &Value,
    limit: usize,
    secrets: &Secrets,
) -> Result<MessageContent, ToolError> {
    let blocks = match response.get("content") {
        Some(Value::Array(blocks)) => blocks,
        // Some servers send a text or one block in place of the list.
        Some(block @ (Value::String(_) | Value::Object(_))) => slice::from_ref(block),
        _ => &[],
    };
    let is_error = response.get("isError").and_then(Value::as_bool) == Some(true);
    let mut result =
        ContentBuilder { parts: Vec::new(), space: limit, limit, is_cut: false, secrets };
    for block in blocks {
        if result.is_cut {
            break;
        }
        if result.parts.len() == MAX_PARTS {
            result.push_part(ContentPart::text(format!(
                "[cut here: the result has more than {MAX_PARTS} parts]"
            )));
            break;
        }
        result.push_block(block);
    }
    if result.parts.is_empty() {
        match response.get("structuredContent") {
            Some(structured) => result.push_text(structured.to_string()),
            None if is_error => {
                result.push_text("(the tool failed, and does not say why)".to_owned())
            }
            None => result.push_text("(the tool returned nothing)".to_owned()),
        }
    }
    let content = result.build();
    if is_error { Err(ToolError::new(content.text())) } else { Ok(content) }
}

struct ContentBuilder<'s> {
    parts: Vec<ContentPart>,
    space: usize,
    limit: usize,
    /// Set by the first part that is cut; the result ends there.
    is_cut: bool,
    secrets: &'s Secrets,
}

impl ContentBuilder<'_> {
    fn push_block(&mut self, block: &Value) {
        if let Some(text) = block.as_str() {
            return self.push_text(text.to_owned());
        }
        let text_of = |key: &str| block.get(key).and_then(Value::as_str);
        match text_of("type").unwrap_or_default() {
            "text" => self.push_text(text_of("text").unwrap_or_default().to_owned()),
            "image" | "audio" => {
                self.push_media(text_of("data"), text_of("mimeType"), "in the result")
            }
            "resource" => self.push_resource(block.get("resource").unwrap_or(&Value::Null)),
            "resource_link" => {
                let (name, uri) = (
                    text_of("title").or(text_of("name")).unwrap_or("resource"),
                    text_of("uri").unwrap_or_default(),
                );
                let description =
                    text_of("description").map(|text| format!(": {text}")).unwrap_or_default();
                self.push_text(format!("[{name}]({uri}){description}"));
            }
            other => self.push_text(format!("[content of the unknown type {other:?}]")),
        }
    }

    fn push_resource(&mut self, resource: &Value) {
        let text_of = |key: &str| resource.get(key).and_then(Value::as_str);
        let uri = text_of("uri").unwrap_or("a resource");
        match (text_of("text"), text_of("blob")) {
            (Some(text), _) => self.push_text(format!("{uri}:\n{text}")),
            (None, blob) => self.push_media(blob, text_of("mimeType"), uri),
        }
    }

    fn push_media(&mut self, data: Option<&str>, mime_type: Option<&str>, place: &str) {
        let (data, mime_type) =
            (data.unwrap_or_default(), mime_type.unwrap_or("application/octet-stream"));
        let part = match mime_type.split('/').next() {
            Some("image") => ContentPart::Image,
            Some("audio") => ContentPart::Audio,
            _ => return self.push_text(format!("[{mime_type} {place}, which cannot be shown]")),
        };
        if data.len() + mime_type.len() > self.space {
            return self.push_text(format!(
                "[{mime_type} {place}, left out: the result is larger than {} bytes]",
                self.limit
            ));
        }
        self.space -= data.len() + mime_type.len();
        let source = PartSource::Data { value: data.to_owned(), mime_type: mime_type.to_owned() };
        self.push_part(part(source.into()));
    }

    fn push_text(&mut self, text: String) {
        let mut text = self.secrets.redact(&text).unwrap_or(text);
        if text.len() > self.space {
            text.truncate(text.floor_char_boundary(self.space));
            text.push_str(&format!("\n[cut here: the result is larger than {} bytes]", self.limit));
            self.is_cut = true;
        }
        self.space = self.space.saturating_sub(text.len());
        self.push_part(ContentPart::text(text));
    }

    fn push_part(&mut self, part: ContentPart) {
        self.parts.push(part);
        // The separator between two texts.
        self.space = self.space.saturating_sub(1);
    }

    fn build(self) -> MessageContent {
        let texts = self.parts.iter().map(|part| match part {
            ContentPart::Text(text) => Some(text.text.as_str()),
            _ => None,
        });
        match texts.collect::<Option<Vec<_>>>() {
            Some(texts) => texts.join("\n").into(),
            None => self.parts.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn text(response: Value) -> String {
        match to_content(&response, 1000, &Secrets::default()).unwrap() {
            MessageContent::Text(text) => text,
            parts => panic!("{parts:?}"),
        }
    }

    #[test]
    fn text_blocks_are_joined() {
        let blocks = json!([
            { "type": "text", "text": "a" },
            { "type": "resource", "resource": { "uri": "file:///b", "text": "b" } },
            { "type": "resource_link", "uri": "file:///c", "name": "c", "description": "the third" },
            { "type": "resource", "resource": { "uri": "file:///d", "blob": "AAAA", "mimeType": "application/zip" } },
            { "type": "hologram" },
        ]);
        let told = "a\nfile:///b:\nb\n[c](file:///c): the third\n[application/zip file:///d, which cannot be shown]\n\
                    [content of the unknown type \"hologram\"]";
        assert_eq!(text(json!({ "content": blocks })), told);
    }

    #[test]
    fn structured_content_is_used_if_there_is_no_other_content() {
        assert_eq!(text(json!({ "content": [], "structuredContent": { "n": 1 } })), r#"{"n":1}"#);
        let both = json!({ "content": [{ "type": "text", "text": "one" }], "structuredContent": { "n": 1 } });
        assert_eq!(text(both), "one");
        assert_eq!(text(json!({})), "(the tool returned nothing)");
    }

    #[test]
    fn images_and_audio_keep_their_type() {
        let blocks = json!([
            { "type": "text", "text": "look" },
            { "type": "image", "data": "AAAA", "mimeType": "image/png" },
            { "type": "resource", "resource": { "uri": "x:y", "blob": "BBBB", "mimeType": "audio/wav" } },
        ]);
        let data = |value: &str, mime_type: &str| PartSource::Data {
            value: value.into(),
            mime_type: mime_type.into(),
        };
        let expected = vec![
            ContentPart::text("look"),
            ContentPart::image(data("AAAA", "image/png")),
            ContentPart::Audio(data("BBBB", "audio/wav").into()),
        ];
        assert_eq!(
            to_content(&json!({ "content": blocks }), 1000, &Secrets::default()).unwrap(),
            expected.into()
        );
    }

    #[test]
    fn an_error_result_is_an_error_with_its_text() {
        let error = to_content(
            &json!({ "content": [{ "type": "text", "text": "no such file" }], "isError": true }),
            1000,
            &Secrets::default(),
        );
        assert_eq!(error.unwrap_err().message(), "no such file");
    }

    #[test]
    fn content_beyond_the_limit_is_cut_with_a_note() {
        let blocks = json!([
            { "type": "text", "text": "é".repeat(4) },
            { "type": "image", "data": "A".repeat(50), "mimeType": "image/png" },
            { "type": "text", "text": "é".repeat(40) },
        ]);
        let MessageContent::Text(text) =
            to_content(&json!({ "content": blocks }), 41, &Secrets::default()).unwrap()
        else {
            panic!()
        };
        assert!(
            text.starts_with("éééé\n[image/png in the result")
                && text.ends_with("larger than 41 bytes]"),
            "{text}"
        );
        assert!(text.len() < 200);
    }

    #[test]
    fn blocks_beyond_the_limit_add_nothing() {
        let note = "\n[cut here: the result is larger than 1000 bytes]";
        let line = json!({ "type": "text", "text": "x".repeat(99) });
        assert_eq!(text(json!({ "content": vec![line.clone(); 10] })).len(), 999);
        let cut = text(json!({ "content": vec![line; 10_000] }));
        assert!(cut.len() <= 1001 + note.len() && cut.ends_with(note), "{}", cut.len());
        let empty = json!({ "type": "text", "text": "" });
        assert!(text(json!({ "content": vec![empty; 10_000] })).len() <= 1001 + note.len());
    }

    #[test]
    fn the_number_of_parts_is_limited() {
        let parts = |count: usize| {
            let image = json!({ "type": "image", "data": "", "mimeType": "image/png" });
            match to_content(
                &json!({ "content": vec![image; count] }),
                1 << 20,
                &Secrets::default(),
            )
            .unwrap()
            {
                MessageContent::Parts(parts) => parts,
                text => panic!("{text:?}"),
            }
        };
        assert_eq!(parts(MAX_PARTS).len(), MAX_PARTS);
        let cut = parts(100 * MAX_PARTS);
        assert_eq!(cut.len(), MAX_PARTS + 1);
        assert_eq!(
            cut.last(),
            Some(&ContentPart::text("[cut here: the result has more than 1000 parts]"))
        );
    }

    #[test]
    fn a_secret_at_the_cut_is_removed_as_a_whole() {
        let mut secrets = Secrets::default();
        secrets.add("sk-12345678");
        for limit in 1..30 {
            let blocks = json!([{ "type": "text", "text": "the key sk-12345678 is valid" }]);
            for is_error in [false, true] {
                let result =
                    to_content(&json!({ "content": blocks, "isError": is_error }), limit, &secrets);
                let text = result.map_or_else(
                    |error| error.message().to_owned(),
                    |content| content.text().into_owned(),
                );
                assert!(!text.contains("sk-"), "{text}");
            }
        }
    }
}
