//! Common parts of the requests to all providers.

use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::{Map, Value, json};

use crate::{Block, ModelStep, ToolChoice, model::SkippedAttachment};
use agui_base::text::essence;
use agui_protocol::{
    ContentPart, JsonObject, MediaPart, PartSource, TokenUsage, ToolCall, ToolCallId,
    capabilities::MultimodalInputCapabilities,
};
use agui_tools::host::CallArguments;

/// The name that marks OpenAI's artefacts and files.
pub(crate) const OPENAI: &str = "openai";
/// The name that marks Anthropic's artefacts and files.
pub(crate) const ANTHROPIC: &str = "anthropic";
/// The name that marks artefacts and files of the Gemini API.
pub(crate) const GEMINI: &str = "gemini";
/// Replaces a message without content, because providers refuse empty messages.
pub(crate) const EMPTY_TEXT: &str = "(This message is empty.)";
/// The user's first message, for providers that require one before the model's.
pub(crate) const FIRST_USER_TEXT: &str = "(The conversation begins.)";
/// The user's last message, for providers that require one after the model's, as when a run
/// continues without a new message.
pub(crate) const LAST_USER_TEXT: &str = "Continue.";

/// Returns the usage of a request by the counts of its input, its output and all tokens; `None`
/// without counts.
pub(crate) fn token_usage(
    provider: &str,
    model: &str,
    [input_tokens, output_tokens, total]: [Option<u64>; 3],
) -> Option<TokenUsage> {
    let total_tokens = total.or_else(|| input_tokens?.checked_add(output_tokens?));
    input_tokens.or(output_tokens).or(total_tokens)?;
    let (provider, model) = (Some(provider.to_owned()), Some(model.to_owned()));
    Some(TokenUsage {
        provider,
        model,
        input_tokens,
        output_tokens,
        total_tokens,
        ..TokenUsage::default()
    })
}

/// Returns a MIME type in the form that providers know: `image/jpg` is a common name for the registered `image/jpeg`.
pub(crate) fn image_type(mime_type: &str) -> String {
    let essence = essence(mime_type);
    if essence == "image/jpg" { "image/jpeg".to_owned() } else { essence }
}

/// Returns the kind and the file of a part, or the text of a part without a file.
pub(crate) fn media(part: &ContentPart) -> Result<(&'static str, &MediaPart), &str> {
    match part {
        ContentPart::Text(text) => Err(&text.text),
        ContentPart::Image(media) => Ok(("image", media)),
        ContentPart::Audio(media) => Ok(("audio", media)),
        ContentPart::Video(media) => Ok(("video", media)),
        ContentPart::Document(media) => Ok(("document", media)),
    }
}

/// Returns the report of a file that the model does not get; `None` for a text.
pub(crate) fn skipped_attachment(part: &ContentPart, reason: &str) -> Option<SkippedAttachment> {
    media(part).ok().map(|(kind, media)| skipped_medium(kind, media, reason))
}

pub(super) fn skipped_medium(
    kind: &'static str,
    media: &MediaPart,
    reason: &str,
) -> SkippedAttachment {
    SkippedAttachment {
        kind,
        name: media.file_name().map(str::to_owned),
        mime_type: media.source.mime_type().map(str::to_owned),
        reason: reason.to_owned(),
    }
}

/// Returns the words that replace a file in a text.
pub(crate) fn placeholder(kind: &str) -> String {
    format!("[{}]", if kind == "document" { "file" } else { kind })
}

/// Returns the texts of parts in a provider's form; `None` if a part is not a text.
pub(crate) fn texts(parts: &[Value]) -> Option<Vec<&str>> {
    parts.iter().map(|part| part["text"].as_str()).collect()
}

/// Returns the MIME type of an image that the models of every provider read, or the reason why
/// another image is not sent.
pub(crate) fn known_image_type(mime_type: &str) -> Result<String, &'static str> {
    let mime_type = image_type(mime_type);
    match mime_type.as_str() {
        "image/png" | "image/jpeg" | "image/webp" | "image/gif" => Ok(mime_type),
        _ => Err("this model takes images as PNG, JPEG, WebP or GIF only"),
    }
}

/// Returns the id of a file at the provider, or the reason why another provider's file is not sent.
pub(crate) fn own_file<'m>(media: &'m MediaPart, own: &str) -> Result<&'m str, &'static str> {
    match &media.source {
        PartSource::File { value, provider, .. } if provider.as_deref() == Some(own) => Ok(value),
        _ => Err("this model cannot read files of another provider"),
    }
}

/// Returns a schema as an object with properties, which providers require. Clients send `{}` for a
/// tool without arguments.
pub(crate) fn schema(parameters: &Value) -> Value {
    let mut schema = parameters.as_object().cloned().unwrap_or_default();
    schema.entry("type").or_insert_with(|| "object".into());
    if schema.get("type").is_some_and(|kind| kind == "object") {
        schema.entry("properties").or_insert_with(|| json!({}));
    }
    schema.into()
}

/// Returns the arguments of a call; an empty object if they cannot be repaired, because providers
/// refuse invalid JSON.
pub(crate) fn arguments(text: &str) -> Map<String, Value> {
    CallArguments::read(text).unwrap_or_default().object
}

/// Returns a call's arguments as the model wrote them, if they are valid: the provider's cache compares characters.
pub(crate) fn arguments_as_text(call: &ToolCall) -> String {
    let original = &call.function.arguments;
    match serde_json::from_str::<Map<String, Value>>(original) {
        Ok(_) => original.clone(),
        Err(_) => Value::Object(arguments(original)).to_string(),
    }
}

/// Sets members of a request's JSON.
pub(crate) trait SetMember {
    /// Sets a member, unless the value is absent: `null`, an empty list or an empty object.
    fn set(&mut self, name: &str, value: impl Into<Value>);
}

impl SetMember for JsonObject {
    fn set(&mut self, name: &str, value: impl Into<Value>) {
        let value = value.into();
        let is_absent = match &value {
            Value::Null => true,
            Value::Array(list) => list.is_empty(),
            Value::Object(members) => members.is_empty(),
            _ => false,
        };
        if !is_absent {
            self.insert(name.to_owned(), value);
        }
    }
}

/// Returns an id that the provider takes. Another provider's id may be too long or have other
/// characters; its hash keeps a call and its result together.
pub(crate) fn call_id(id: &ToolCallId) -> String {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if (1..=40).contains(&id.len()) && id.chars().all(is_allowed) {
        return id.as_str().to_owned();
    }
    let mut hasher = DefaultHasher::new();
    id.hash(&mut hasher);
    format!("call_{:016x}", hasher.finish())
}

/// Marks instructions that stand in a user's message.
pub(crate) fn marked_instructions(text: &str) -> String {
    format!("<system-instructions>\n{text}\n</system-instructions>")
}

/// Returns the instructions at the beginning of a conversation, and the steps after them.
pub(crate) fn leading_instructions(
    steps: &[ModelStep],
) -> (impl Iterator<Item = &str>, &[ModelStep]) {
    let count = steps.iter().take_while(|step| matches!(step, ModelStep::Instructions(_))).count();
    let (leading, rest) = steps.split_at(count);
    let texts = leading.iter().filter_map(|step| match step {
        ModelStep::Instructions(text) => Some(text.as_str()),
        _ => None,
    });
    (texts, rest)
}

/// The messages of a request, with alternating roles.
#[derive(Debug, Default)]
pub(crate) struct RoleMessages(pub(crate) Vec<RoleMessage>);

#[derive(Debug)]
pub(crate) struct RoleMessage {
    pub(crate) role: &'static str,
    /// True if no parts may be added to the message.
    pub(crate) is_whole: bool,
    pub(crate) parts: Vec<Value>,
}

impl RoleMessages {
    /// Adds parts, to the last message if it has the same role.
    pub(crate) fn push(&mut self, role: &'static str, parts: Vec<Value>) {
        match self.0.last_mut().filter(|last| last.role == role && !last.is_whole) {
            _ if parts.is_empty() => {}
            Some(last) => last.parts.extend(parts),
            None => self.0.push(RoleMessage { role, is_whole: false, parts }),
        }
    }

    /// Adds the required first and last messages of the user, if they are missing. Returns whether
    /// it added the first.
    pub(crate) fn complete(&mut self, text: fn(&str) -> Value) -> bool {
        let is_first_new = self.0.first().is_none_or(|first| first.role != "user");
        if is_first_new {
            self.0.insert(
                0,
                RoleMessage { role: "user", is_whole: false, parts: vec![text(FIRST_USER_TEXT)] },
            );
        }
        if self.0.last().is_some_and(|last| last.role != "user") {
            self.push("user", vec![text(LAST_USER_TEXT)]);
        }
        is_first_new
    }
}

/// Returns a text that asks for the forced calls of a choice, for providers that cannot force
/// calls; `None` if the choice forces no call.
pub(crate) fn forced_call_in_words(choice: &ToolChoice) -> Option<String> {
    match choice {
        ToolChoice::Auto | ToolChoice::None => None,
        ToolChoice::Required => Some("Call a tool now, before you write anything else.".to_owned()),
        ToolChoice::Tool(name) => {
            Some(format!("Call the tool `{name}` now, before you write anything else."))
        }
    }
}

/// Returns a text that asks for an answer in a schema, for providers that take no schema.
pub(crate) fn schema_in_words(schema: &JsonObject) -> String {
    let schema = Value::Object(schema.clone());
    format!(
        "Answer with one JSON object alone, without Markdown or other text. It has to fit this JSON Schema:\n{schema}"
    )
}

pub(crate) fn calls(steps: &[ModelStep]) -> impl Iterator<Item = &ToolCall> {
    let blocks = steps.iter().flat_map(|step| match step {
        ModelStep::Assistant(blocks) => blocks.as_slice(),
        _ => &[],
    });
    blocks.filter_map(|block| match block {
        Block::Call(call) => Some(call),
        _ => None,
    })
}

/// Returns the kinds of files that a provider reads: images, audio, video and PDFs. Text files are
/// sent as text to every provider.
pub(crate) fn media_input([image, audio, video, pdf]: [bool; 4]) -> MultimodalInputCapabilities {
    let [image, audio, video, pdf] = [image, audio, video, pdf].map(Some);
    MultimodalInputCapabilities { image, audio, video, pdf, file: Some(true) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schema_is_always_that_of_an_object() {
        let empty = json!({"type": "object", "properties": {}});
        assert_eq!(schema(&Value::Null), empty);
        assert_eq!(schema(&json!({})), empty);
        assert_eq!(
            schema(&json!({"properties": {"a": {}}})),
            json!({"type": "object", "properties": {"a": {}}})
        );
        let without_properties = json!({"type": "object", "required": ["a"]});
        assert_eq!(schema(&without_properties)["properties"], json!({}));
    }

    #[test]
    fn arguments_that_are_not_an_object_become_an_empty_one() {
        for text in ["", "{", "[]", "null", "\"a\"", "{\"a\":1} x"] {
            assert_eq!(arguments(text), Map::new(), "{text}");
        }
        let written = |text: &str| arguments_as_text(&ToolCall::new("c", "f", text));
        assert_eq!(written("{\"a\" : 1}"), "{\"a\" : 1}", "the text stays if it is an object");
        assert_eq!(written("{}{'a': True}"), "{}");
        assert_eq!(written("{'a': True,}"), r#"{"a":true}"#);
        assert_eq!(written(r#""{\"a\":1}""#), r#"{"a":1}"#);
        assert_eq!(
            Value::from(arguments(" {\"b\":1,\"a\":[2]} ")).to_string(),
            r#"{"b":1,"a":[2]}"#
        );
    }

    #[test]
    fn an_id_that_a_provider_would_refuse_is_replaced_by_its_hash() {
        assert_eq!(call_id(&"call_aB-1".into()), "call_aB-1");
        for id in ["", "a:b", "é", &"x".repeat(41)] {
            let replaced = call_id(&id.into());
            assert_eq!(replaced, call_id(&id.into()));
            assert_eq!(replaced.len(), 21);
        }
        assert_ne!(call_id(&"a:b".into()), call_id(&"a:c".into()));
    }
}
