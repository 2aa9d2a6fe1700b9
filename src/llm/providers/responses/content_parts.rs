//! Content parts of messages and of tool results.

use serde_json::{Value, json};

use crate::{
    base::text::essence,
    llm::{
        ModelOptions,
        providers::attachments::Attachments,
        providers::wire::{OPENAI, known_image_type, own_file, texts},
    },
    protocol::{ContentPart, MediaPart, MessageContent, PartSource},
};

pub(super) fn text(text: &str) -> Value {
    json!({"type": "input_text", "text": text})
}

/// Returns the parts of a message. A text stands for what the model cannot read.
pub(super) fn parts(parts: &[ContentPart], options: &ModelOptions, attachments: &mut Attachments) -> Vec<Value> {
    let content = parts
        .iter()
        .map(|part| attachments.sent(part, |part| native(part, options)).unwrap_or_else(|note| text(&note)));
    content.filter(|part| part["text"] != "").collect()
}

/// Text alone is a string, which older servers require.
pub(super) fn output(content: &MessageContent, options: &ModelOptions, attachments: &mut Attachments) -> Value {
    let MessageContent::Parts(all) = content else { return content.text().into_owned().into() };
    let parts = parts(all, options, attachments);
    match texts(&parts) {
        Some(texts) => texts.join("\n").into(),
        None => parts.into(),
    }
}

/// Returns a part in the API's form, or the reason for which it is not sent.
fn native(part: &ContentPart, options: &ModelOptions) -> Result<Value, &'static str> {
    match part {
        ContentPart::Text(part) => Ok(text(&part.text)),
        ContentPart::Image(media) => image(media, options),
        ContentPart::Document(media) => document(media),
        ContentPart::Audio(_) => Err("this model takes no audio"),
        ContentPart::Video(_) => Err("this model takes no videos"),
    }
}

/// The types are those of <https://developers.openai.com/api/docs/guides/images-vision>.
fn image(media: &MediaPart, options: &ModelOptions) -> Result<Value, &'static str> {
    let detail = options.image_detail.as_deref().unwrap_or("auto");
    let mut image = json!({"type": "input_image", "detail": detail});
    match &media.source {
        PartSource::Data { value, mime_type } => {
            image["image_url"] = format!("data:{};base64,{value}", known_image_type(mime_type)?).into();
        }
        PartSource::Url { value, .. } => image["image_url"] = value.as_str().into(),
        PartSource::File { .. } => image["file_id"] = own_file(media, OPENAI)?.into(),
    }
    Ok(image)
}

/// See <https://developers.openai.com/api/docs/guides/file-inputs>: PDFs and office files as data, all files by URL.
fn document(media: &MediaPart) -> Result<Value, &'static str> {
    let mut file = json!({"type": "input_file"});
    match &media.source {
        PartSource::Data { value, mime_type } => {
            let mime_type = essence(mime_type);
            let extension = extension(&mime_type).ok_or("this model takes no documents of this type")?;
            file["filename"] = media.file_name().map_or_else(|| format!("document.{extension}"), str::to_owned).into();
            file["file_data"] = format!("data:{mime_type};base64,{value}").into();
        }
        PartSource::Url { value, .. } => file["file_url"] = value.as_str().into(),
        PartSource::File { .. } => file["file_id"] = own_file(media, OPENAI)?.into(),
    }
    Ok(file)
}

/// Returns the extension of a file's name, by which the service recognises its type.
fn extension(mime_type: &str) -> Option<&'static str> {
    Some(match mime_type {
        "application/pdf" => "pdf",
        "application/msword" => "doc",
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document" => "docx",
        "application/rtf" | "text/rtf" => "rtf",
        "application/vnd.oasis.opendocument.text" => "odt",
        "application/vnd.ms-powerpoint" => "ppt",
        "application/vnd.openxmlformats-officedocument.presentationml.presentation" => "pptx",
        "application/vnd.ms-excel" => "xls",
        "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet" => "xlsx",
        _ => return None,
    })
}
