//! The parts of a user's message.

use serde_json::{Value, json};

use crate::{
    known_models::{Documents, Profile},
    providers::wire::{OPENAI, known_image_type},
};
use agui_base::text::essence;
use agui_protocol::{ContentPart, MediaPart, PartSource};

pub(super) fn text_part(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

/// Returns a part in the server's form, or the reason why it is not sent.
pub(super) fn native(
    part: &ContentPart,
    profile: &Profile,
    image_detail: Option<&str>,
) -> Result<Value, &'static str> {
    match part {
        ContentPart::Text(part) => Ok(text_part(&part.text)),
        ContentPart::Image(media) => image(media, profile, image_detail),
        ContentPart::Audio(media) => audio(media, profile),
        ContentPart::Video(_) => Err("this model takes no videos"),
        ContentPart::Document(media) => document(media, profile),
    }
}

fn image(
    media: &MediaPart,
    profile: &Profile,
    detail: Option<&str>,
) -> Result<Value, &'static str> {
    if !profile.images {
        return Err("this model takes no images");
    }
    let url = match &media.source {
        PartSource::Data { value, mime_type } => {
            format!("data:{};base64,{value}", known_image_type(mime_type)?)
        }
        PartSource::Url { value, .. } if profile.image_urls => value.clone(),
        PartSource::Url { .. } => return Err("this model takes images as data only, not as URLs"),
        PartSource::File { .. } => return Err("this model cannot read files of another provider"),
    };
    let mut image = json!({"url": url});
    if let Some(detail) = detail {
        image["detail"] = detail.into();
    }
    Ok(json!({"type": "image_url", "image_url": image}))
}

fn audio(media: &MediaPart, profile: &Profile) -> Result<Value, &'static str> {
    if !profile.audio {
        return Err("this model takes no audio");
    }
    let PartSource::Data { value, mime_type } = &media.source else {
        return Err("this model takes audio as data only");
    };
    let format = match essence(mime_type).as_str() {
        "audio/wav" | "audio/x-wav" | "audio/wave" | "audio/vnd.wave" => "wav",
        "audio/mpeg" | "audio/mp3" | "audio/mpeg3" | "audio/x-mpeg-3" => "mp3",
        _ => return Err("this model takes audio as WAV or MP3 only"),
    };
    Ok(json!({"type": "input_audio", "input_audio": {"data": value, "format": format}}))
}

/// Returns a document in the server's form. Chat completions take only PDFs, and no URLs of them:
/// <https://developers.openai.com/api/docs/guides/file-inputs>.
fn document(media: &MediaPart, profile: &Profile) -> Result<Value, &'static str> {
    const PDF: &str = "application/pdf";
    let name = media.file_name().unwrap_or("document.pdf");
    let data_url = |data: &str| format!("data:{PDF};base64,{data}");
    // https://docs.mistral.ai/capabilities/document_ai/document_qna
    let by_url = |url: String| {
        Ok(json!({"type": "document_url", "document_url": url, "document_name": name}))
    };
    match (profile.documents, &media.source) {
        (Documents::File, PartSource::File { value, provider, .. })
            if provider.as_deref() == Some(OPENAI) =>
        {
            Ok(json!({"type": "file", "file": {"file_id": value}}))
        }
        (Documents::File, PartSource::Data { value, mime_type }) if essence(mime_type) == PDF => {
            Ok(json!({"type": "file", "file": {"filename": name, "file_data": data_url(value)}}))
        }
        (Documents::DocumentUrl, PartSource::Data { value, mime_type })
            if essence(mime_type) == PDF =>
        {
            by_url(data_url(value))
        }
        (Documents::DocumentUrl, PartSource::Url { value, .. }) => by_url(value.clone()),
        (_, PartSource::Url { .. }) => Err("this model takes documents as data only, not as URLs"),
        _ => Err("this model takes no documents of this type"),
    }
}
