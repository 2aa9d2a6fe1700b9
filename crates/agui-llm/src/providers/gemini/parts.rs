//! Parts of the contents of a request: text, media and function responses.

use std::borrow::Cow;

use serde_json::{Value, json};

use crate::{
    ToolResult,
    known_models::GeminiRules,
    providers::{
        attachments::Attachments,
        wire::{EMPTY_TEXT, GEMINI, image_type, media},
    },
};
use agui_base::text::is_in;
use agui_protocol::{ContentPart, MessageContent, PartSource};

/// <https://ai.google.dev/gemini-api/docs/image-understanding#supported-formats>
const IMAGES: &str = "image/png image/jpeg image/webp image/heic image/heif";
/// <https://ai.google.dev/gemini-api/docs/audio#supported-formats>, and further names of the same formats.
const AUDIO: &str = "\
    audio/wav audio/x-wav audio/mp3 audio/mpeg audio/aiff audio/aac audio/ogg audio/flac audio/mp4 audio/m4a \
    audio/x-m4a audio/webm audio/opus";
/// <https://ai.google.dev/gemini-api/docs/video-understanding#supported-formats>
const VIDEO: &str = "\
    video/mp4 video/mpeg video/mov video/quicktime video/avi video/x-flv video/mpg video/webm video/wmv \
    video/3gpp";
const DOCUMENTS: &str = "application/pdf";
/// The types of files in a function response: <https://ai.google.dev/gemini-api/docs/function-calling#multimodal>.
const IN_RESULTS: &str = "image/png image/jpeg image/webp application/pdf text/plain";

pub(super) fn text(text: &str) -> Value {
    json!({"text": text})
}

/// Returns the parts of a user's message. A text replaces a part that the model cannot read.
pub(super) fn user_parts(
    parts: &[ContentPart],
    rules: &GeminiRules,
    attachments: &mut Attachments,
) -> Vec<Value> {
    let mut sent = Vec::new();
    for part in parts {
        match attachments.sent(part, |part| part_of(part, rules)) {
            Ok(part) => sent.extend(part),
            Err(note) => sent.push(text(&note)),
        }
    }
    if sent.is_empty() {
        sent.push(text(EMPTY_TEXT));
    }
    sent
}

/// Returns a function response, and the media that have to follow it. The API defines the members
/// `output` and `error`: <https://ai.google.dev/api/caching#FunctionResponse>.
pub(super) fn function_response(
    result: &ToolResult,
    rules: &GeminiRules,
    attachments: &mut Attachments,
) -> (Value, Vec<Value>) {
    let mut texts: Vec<Cow<'_, str>> = Vec::new();
    let mut media = Vec::new();
    let parts = match &result.content {
        MessageContent::Text(text) => {
            texts.push(text.into());
            &[][..]
        }
        MessageContent::Parts(parts) => parts.as_slice(),
    };
    for part in parts {
        let sent = match part {
            ContentPart::Text(text) => {
                texts.push((&text.text).into());
                continue;
            }
            part if rules.media_in_results => attachments.sent(part, in_result),
            part => {
                attachments.sent(part, |part| part_of(part, rules).map(Option::unwrap_or_default))
            }
        };
        match sent {
            Ok(part) => media.push(part),
            Err(note) => texts.push(note.into()),
        }
    }
    let key = if result.failed { "error" } else { "output" };
    let mut response = json!({
        "id": result.call_id.as_str(),
        "name": result.name,
        "response": {key: texts.join("\n")},
    });
    if rules.media_in_results && !media.is_empty() {
        response["parts"] = std::mem::take(&mut media).into();
    }
    (json!({"functionResponse": response}), media)
}

/// Returns a part in the API's form; `Ok(None)` for an empty part.
///
/// # Errors
/// The reason, for people, if the model cannot read the part.
fn part_of(part: &ContentPart, rules: &GeminiRules) -> Result<Option<Value>, String> {
    let (media, types) = match part {
        ContentPart::Text(part) if part.text.trim().is_empty() => return Ok(None),
        ContentPart::Text(part) => return Ok(Some(text(&part.text))),
        ContentPart::Image(media) => (media, IMAGES),
        ContentPart::Audio(media) => (media, AUDIO),
        ContentPart::Video(media) => (media, VIDEO),
        ContentPart::Document(media) => (media, DOCUMENTS),
    };
    match &media.source {
        PartSource::Data { value, mime_type } => inline(value, mime_type, types).map(Some),
        PartSource::Url { value, mime_type } => {
            by_url(part, value, mime_type.as_deref(), rules).map(Some)
        }
        PartSource::File { value, provider, mime_type } => match provider.as_deref() {
            Some(GEMINI | "google") => Ok(Some(file(value, mime_type.as_deref()))),
            _ => Err("the file is at another model provider".to_owned()),
        },
    }
}

fn inline(data: &str, mime_type: &str, types: &str) -> Result<Value, String> {
    let mime_type = image_type(mime_type);
    if is_in(types, &mime_type) {
        Ok(json!({"inlineData": {"mimeType": mime_type, "data": data}}))
    } else {
        Err(format!("this model takes no {mime_type}"))
    }
}

/// Returns a part by its URL. The API reads images and documents at public URLs, and videos from
/// YouTube: <https://ai.google.dev/gemini-api/docs/file-input-methods>,
/// <https://ai.google.dev/gemini-api/docs/video-understanding#youtube>. Its own files are read by
/// all models.
fn by_url(
    part: &ContentPart,
    url: &str,
    mime_type: Option<&str>,
    rules: &GeminiRules,
) -> Result<Value, String> {
    const FILES: &[&str] = &["https://generativelanguage.googleapis.com/", "gs://"];
    const YOUTUBE: &[&str] =
        &["https://www.youtube.com/", "https://youtube.com/", "https://youtu.be/"];
    let begins_with = |starts: &[&str]| starts.iter().any(|start| url.starts_with(start));
    let is_video = matches!(part, ContentPart::Video(_));
    if begins_with(FILES) || is_video && begins_with(YOUTUBE) {
        return Ok(file(url, mime_type));
    }
    if is_video || matches!(part, ContentPart::Audio(_)) {
        return Err("this model takes audio and video only in the message itself".to_owned());
    }
    if rules.files_by_url {
        Ok(file(url, mime_type))
    } else {
        Err("this model takes no files at a URL".to_owned())
    }
}

fn file(uri: &str, mime_type: Option<&str>) -> Value {
    let mut file = json!({"fileUri": uri});
    if let Some(mime_type) = mime_type {
        file["mimeType"] = image_type(mime_type).into();
    }
    json!({"fileData": file})
}

fn in_result(part: &ContentPart) -> Result<Value, String> {
    let source = media(part).map(|(_, media)| &media.source);
    match source {
        Ok(PartSource::Data { value, mime_type }) => inline(value, mime_type, IN_RESULTS),
        _ => Err("this model takes the files of a result only in the result itself".to_owned()),
    }
}
