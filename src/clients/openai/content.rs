//! The content of messages: a text, or parts.

use serde::Deserialize;
use serde_json::json;
use utoipa::ToSchema;

use crate::http::{ApiError, ApiResult};
use agui_base::text::short_name;
use agui_protocol::{ContentPart, MediaPart, MessageContent, PartSource};

/// A text, or parts.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(untagged, expecting = "expected a text or a list of parts")]
pub(super) enum CompletionContent {
    Text(String),
    Parts(Vec<CompletionPart>),
}

/// A part: a text, or in messages of a user also a picture, a file or sound.
#[derive(Debug, Deserialize, ToSchema)]
pub(super) struct CompletionPart {
    #[serde(rename = "type")]
    #[schema(pattern = "^(text|refusal|image_url|file|input_audio)$")]
    kind: String,
    text: Option<String>,
    refusal: Option<String>,
    #[schema(inline)]
    image_url: Option<ImageUrl>,
    #[schema(inline)]
    file: Option<FileData>,
    #[schema(inline)]
    input_audio: Option<InputAudio>,
}

#[derive(Debug, Deserialize, ToSchema)]
struct ImageUrl {
    /// A URL of `https:`, `http:` or `data:`.
    url: String,
}

#[derive(Debug, Deserialize, ToSchema)]
struct FileData {
    /// A URL of `data:`.
    file_data: Option<String>,
    filename: Option<String>,
    /// Not supported.
    file_id: Option<String>,
}

#[derive(Debug, Deserialize, ToSchema)]
struct InputAudio {
    /// The bytes in base64.
    data: String,
    #[schema(pattern = "^(wav|mp3)$")]
    format: String,
}

impl CompletionContent {
    /// Returns the content of a message that can have media. `path` is the path of the content.
    pub(super) fn into_content(self, path: &str) -> ApiResult<MessageContent> {
        match self {
            Self::Text(text) => Ok(MessageContent::Text(text)),
            Self::Parts(parts) => {
                let parts = parts.into_iter().enumerate();
                let parts = parts.map(|(index, part)| part.into_part(&format!("{path}[{index}]")));
                Ok(MessageContent::Parts(parts.collect::<ApiResult<_>>()?))
            }
        }
    }

    /// Returns the text of a message that has text alone.
    pub(super) fn into_text(self, path: &str) -> ApiResult<String> {
        match self.into_content(path)? {
            MessageContent::Text(text) => Ok(text),
            MessageContent::Parts(parts) => {
                let is_text = |part: &ContentPart| matches!(part, ContentPart::Text(_));
                match parts.iter().position(|part| !is_text(part)) {
                    None => Ok(MessageContent::Parts(parts).text().into_owned()),
                    Some(index) => {
                        let problem = "text; other parts are for messages of the role user";
                        Err(ApiError::invalid_input(&format!("{path}[{index}].type"), problem))
                    }
                }
            }
        }
    }
}

impl CompletionPart {
    fn into_part(self, path: &str) -> ApiResult<ContentPart> {
        let missing = |name: &str| ApiError::invalid_input(&format!("{path}.{name}"), "a value");
        Ok(match &*self.kind {
            "text" => ContentPart::text(self.text.ok_or_else(|| missing("text"))?),
            "refusal" => ContentPart::text(self.refusal.ok_or_else(|| missing("refusal"))?),
            "image_url" => {
                let url = self.image_url.ok_or_else(|| missing("image_url"))?.url;
                ContentPart::image(source_of(url, &format!("{path}.image_url.url"))?)
            }
            "input_audio" => {
                let audio = self.input_audio.ok_or_else(|| missing("input_audio"))?;
                let mime_type = match &*audio.format {
                    "wav" => "audio/wav",
                    "mp3" => "audio/mpeg",
                    _ => {
                        let path = format!("{path}.input_audio.format");
                        return Err(ApiError::invalid_input(&path, "wav or mp3"));
                    }
                };
                let source = PartSource::Data { value: audio.data, mime_type: mime_type.into() };
                ContentPart::media(mime_type, source.into())
            }
            "file" => self.file.ok_or_else(|| missing("file"))?.into_part(path)?,
            _ => {
                let known = "text, refusal, image_url, file or input_audio";
                let found = short_name(&self.kind);
                return Err(ApiError::invalid_input(
                    &format!("{path}.type"),
                    &format!("{known}, found {found:?}"),
                ));
            }
        })
    }
}

impl FileData {
    fn into_part(self, path: &str) -> ApiResult<ContentPart> {
        if self.file_id.is_some() {
            // The ids are those of a provider, which this server is not.
            return Err(ApiError::UnsupportedParameter { path: format!("{path}.file.file_id") });
        }
        let path = format!("{path}.file.file_data");
        let data = self.file_data.filter(|data| data.starts_with("data:"));
        let data = data.ok_or_else(|| ApiError::invalid_input(&path, "a data: URL"))?;
        let source = source_of(data, &path)?;
        let mime_type = source.mime_type().unwrap_or_default().to_owned();
        let metadata = self.filename.map(|name| json!({ "filename": name }));
        Ok(ContentPart::media(&mime_type, MediaPart { metadata, ..source.into() }))
    }
}

/// Returns the location that a URL says: bytes of a `data:` URL are inline.
fn source_of(url: String, path: &str) -> ApiResult<PartSource> {
    let expected = "a URL of https:, http:, or data: with a media type and base64";
    let invalid = || ApiError::invalid_input(path, expected);
    if let Some(data) = url.strip_prefix("data:") {
        let (head, value) = data.split_once(',').ok_or_else(invalid)?;
        let mime_type = head.strip_suffix(";base64").ok_or_else(invalid)?;
        // Parameters such as a charset follow a semicolon.
        let mime_type = mime_type.split(';').next().filter(|essence| essence.contains('/'));
        let mime_type = mime_type.ok_or_else(invalid)?.to_ascii_lowercase();
        return Ok(PartSource::Data { value: value.to_owned(), mime_type });
    }
    if !url.starts_with("https://") && !url.starts_with("http://") {
        return Err(invalid());
    }
    Ok(PartSource::Url { value: url, mime_type: None })
}
