//! From what an MCP server answers to a tool's result: text, pictures and sound as what they are, all else as text.
//!
//! Read leniently, from JSON: a server that says more than the standard knows is still understood as far as it goes.

use serde_json::Value;

use crate::{
    protocol::{ContentPart, MessageContent, PartSource},
    tools::ToolError,
};

/// Reads the answer to a call. What is beyond `limit` bytes is cut or left out, and said to be.
pub(super) fn read(answer: &Value, limit: usize) -> Result<MessageContent, ToolError> {
    let blocks = answer.get("content").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let mut result = Collected { parts: Vec::new(), room: limit, limit };
    blocks.iter().for_each(|block| result.block(block));
    if result.parts.is_empty() {
        match answer.get("structuredContent") {
            Some(structured) => result.text(structured.to_string()),
            None => result.text("(the tool returned nothing)".to_owned()),
        }
    }
    let content = result.content();
    match answer.get("isError").and_then(Value::as_bool) {
        Some(true) => Err(ToolError::new(content.text())),
        _ => Ok(content),
    }
}

struct Collected {
    parts: Vec<ContentPart>,
    room: usize,
    limit: usize,
}

impl Collected {
    fn block(&mut self, block: &Value) {
        let of = |name: &str| block.get(name).and_then(Value::as_str);
        match of("type").unwrap_or_default() {
            "text" => self.text(of("text").unwrap_or_default().to_owned()),
            "image" | "audio" => self.media(of("data"), of("mimeType"), "in the result"),
            "resource" => self.resource(block.get("resource").unwrap_or(&Value::Null)),
            "resource_link" => {
                let (name, uri) = (of("title").or(of("name")).unwrap_or("resource"), of("uri").unwrap_or_default());
                let description = of("description").map(|text| format!(": {text}")).unwrap_or_default();
                self.text(format!("[{name}]({uri}){description}"));
            }
            other => self.text(format!("[something of the unknown type {other:?}]")),
        }
    }

    fn resource(&mut self, resource: &Value) {
        let of = |name: &str| resource.get(name).and_then(Value::as_str);
        let uri = of("uri").unwrap_or("a resource");
        match (of("text"), of("blob")) {
            (Some(text), _) => self.text(format!("{uri}:\n{text}")),
            (None, blob) => self.media(blob, of("mimeType"), uri),
        }
    }

    /// A picture or sound; anything else that is no text can only be named.
    fn media(&mut self, data: Option<&str>, mime_type: Option<&str>, place: &str) {
        let (data, mime_type) = (data.unwrap_or_default(), mime_type.unwrap_or("application/octet-stream"));
        let part = match mime_type.split('/').next() {
            Some("image") => ContentPart::Image,
            Some("audio") => ContentPart::Audio,
            _ => return self.text(format!("[{mime_type} {place}, which cannot be shown]")),
        };
        if data.len() > self.room {
            return self
                .text(format!("[{mime_type} {place}, left out: the result is larger than {} bytes]", self.limit));
        }
        self.room -= data.len();
        let source = PartSource::Data { value: data.to_owned(), mime_type: mime_type.to_owned() };
        self.parts.push(part(source.into()));
    }

    fn text(&mut self, mut text: String) {
        if text.len() > self.room {
            text.truncate(text.floor_char_boundary(self.room));
            text.push_str(&format!("\n[cut here: the result is larger than {} bytes]", self.limit));
            self.room = 0;
        } else {
            self.room -= text.len();
        }
        self.parts.push(ContentPart::text(text));
    }

    /// One text, if there is nothing but text.
    fn content(self) -> MessageContent {
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

    fn text(answer: Value) -> String {
        match read(&answer, 1000).unwrap() {
            MessageContent::Text(text) => text,
            parts => panic!("{parts:?}"),
        }
    }

    #[test]
    fn texts_become_one_text() {
        let blocks = json!([
            { "type": "text", "text": "a" },
            { "type": "resource", "resource": { "uri": "file:///b", "text": "b" } },
            { "type": "resource_link", "uri": "file:///c", "name": "c", "description": "the third" },
            { "type": "resource", "resource": { "uri": "file:///d", "blob": "AAAA", "mimeType": "application/zip" } },
            { "type": "hologram" },
        ]);
        let told = "a\nfile:///b:\nb\n[c](file:///c): the third\n[application/zip file:///d, which cannot be shown]\n\
                    [something of the unknown type \"hologram\"]";
        assert_eq!(text(json!({ "content": blocks })), told);
    }

    #[test]
    fn structured_content_stands_in_for_no_content() {
        assert_eq!(text(json!({ "content": [], "structuredContent": { "n": 1 } })), r#"{"n":1}"#);
        let both = json!({ "content": [{ "type": "text", "text": "one" }], "structuredContent": { "n": 1 } });
        assert_eq!(text(both), "one");
        assert_eq!(text(json!({})), "(the tool returned nothing)");
    }

    #[test]
    fn pictures_and_sound_stay_what_they_are() {
        let blocks = json!([
            { "type": "text", "text": "look" },
            { "type": "image", "data": "AAAA", "mimeType": "image/png" },
            { "type": "resource", "resource": { "uri": "x:y", "blob": "BBBB", "mimeType": "audio/wav" } },
        ]);
        let data = |value: &str, mime_type: &str| PartSource::Data { value: value.into(), mime_type: mime_type.into() };
        let expected = vec![
            ContentPart::text("look"),
            ContentPart::image(data("AAAA", "image/png")),
            ContentPart::Audio(data("BBBB", "audio/wav").into()),
        ];
        assert_eq!(read(&json!({ "content": blocks }), 1000).unwrap(), expected.into());
    }

    #[test]
    fn errors_are_told_to_the_model() {
        let error = read(&json!({ "content": [{ "type": "text", "text": "no such file" }], "isError": true }), 1000);
        assert_eq!(error.unwrap_err().message(), "no such file");
    }

    #[test]
    fn what_is_too_much_is_cut_and_said_to_be() {
        let blocks = json!([
            { "type": "text", "text": "é".repeat(4) },
            { "type": "image", "data": "A".repeat(50), "mimeType": "image/png" },
            { "type": "text", "text": "é".repeat(40) },
        ]);
        let MessageContent::Text(text) = read(&json!({ "content": blocks }), 41).unwrap() else { panic!() };
        assert!(
            text.starts_with("éééé\n[image/png in the result") && text.ends_with("larger than 41 bytes]"),
            "{text}"
        );
        assert!(text.len() < 200);
    }
}
