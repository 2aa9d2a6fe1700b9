//! `POST /transcribe`: transcribes speech from the microphone of a page. Refusals have the form and
//! the codes of CopilotKit's runtime, for which pages have their own texts.

use std::sync::Arc;

use async_trait::async_trait;
use axum::{
    Extension, Json,
    extract::{FromRequestParts, Request, State},
    http::{StatusCode, header, request::Parts},
    response::{IntoResponse, Response},
};
use base64::Engine as _;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::http::{
    ApiError, App,
    accept::middleware::authenticate_caller,
    files::{FormFile, file_of_form},
    read_body,
};
use agui_base::{
    base64_text::LENIENT,
    permits::Permits,
    text::{essence, short_name},
};
use agui_protocol::decode::decode_members;

/// The largest number of concurrent transcriptions, in all and of one principal. Each holds its
/// recording.
const MAX_AT_ONCE: usize = 16;
const MAX_OF_PRINCIPAL: usize = 4;

/// A sound file with speech.
pub(crate) type Speech = FormFile;

/// Transcribes speech.
#[async_trait]
pub(crate) trait Transcribe: Send + Sync {
    /// # Errors
    /// A [`TranscriptionError`]. Its cause is in the log.
    async fn transcribe(&self, speech: Speech) -> Result<String, TranscriptionError>;
}

/// The reason why speech is not transcribed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TranscriptionError {
    #[error("this server has no [transcription] base_url")]
    NotConfigured,
    #[error("{0}")]
    InvalidRequest(String),
    #[error("{0:?} is no type of sound that can be transcribed")]
    Format(String),
    #[error("the recording is too long")]
    TooLong,
    #[error("the recording is too short")]
    TooShort,
    #[error("too many recordings are being transcribed; try again later")]
    RateLimited,
    #[error("the transcription service refuses the server's key")]
    Unauthorized,
    #[error("the transcription service does not answer")]
    Unreachable,
    #[error("the transcription service failed")]
    Failed,
}

impl TranscriptionError {
    /// Returns the status, CopilotKit's code, and whether the same request may succeed later.
    fn refusal(&self) -> (StatusCode, &'static str, bool) {
        match self {
            Self::NotConfigured => {
                (StatusCode::SERVICE_UNAVAILABLE, "service_not_configured", false)
            }
            Self::InvalidRequest(_) => (StatusCode::BAD_REQUEST, "invalid_request", false),
            Self::Format(_) => (StatusCode::BAD_REQUEST, "invalid_audio_format", false),
            Self::TooLong => (StatusCode::BAD_REQUEST, "audio_too_long", false),
            Self::TooShort => (StatusCode::BAD_REQUEST, "audio_too_short", false),
            Self::RateLimited => (StatusCode::TOO_MANY_REQUESTS, "rate_limited", true),
            // With 401, the page would take its own credential for the wrong one.
            Self::Unauthorized => (StatusCode::BAD_GATEWAY, "auth_failed", false),
            Self::Unreachable => (StatusCode::BAD_GATEWAY, "network_error", true),
            Self::Failed => (StatusCode::BAD_GATEWAY, "provider_error", true),
        }
    }
}

impl From<ApiError> for TranscriptionError {
    fn from(error: ApiError) -> Self {
        match error {
            ApiError::BodyTooLarge(_) => Self::TooLong,
            ApiError::TooManyBodyBytes => Self::RateLimited,
            error => Self::InvalidRequest(error.to_string()),
        }
    }
}

/// The body of a refusal.
#[derive(Serialize, ToSchema)]
pub(super) struct CopilotTranscriptionRefusal {
    #[schema(value_type = String)]
    error: &'static str,
    message: String,
    /// True if the same request may succeed later.
    retryable: bool,
}

impl IntoResponse for TranscriptionError {
    fn into_response(self) -> Response {
        let (status, error, retryable) = self.refusal();
        (status, Json(CopilotTranscriptionRefusal { error, message: self.to_string(), retryable }))
            .into_response()
    }
}

/// The service, if one is configured, and the permits for its use.
#[derive(Clone)]
pub(super) struct Transcriber {
    service: Option<Arc<dyn Transcribe>>,
    permits: Arc<Permits>,
}

impl Transcriber {
    pub(super) fn new(service: Option<Arc<dyn Transcribe>>) -> Self {
        Self { service, permits: Permits::new(MAX_AT_ONCE, Some(MAX_OF_PRINCIPAL)) }
    }
}

/// The key of an authenticated caller. The handler authenticates, because the middleware takes no forms.
pub(super) struct Speaker(Arc<str>);

impl FromRequestParts<App> for Speaker {
    type Rejection = ApiError;

    async fn from_request_parts(head: &mut Parts, app: &App) -> Result<Self, ApiError> {
        Ok(Self(authenticate_caller(app, head).await?.owner()))
    }
}

/// The body of a client with a single endpoint, in place of a form.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = CopilotSpeech)]
pub(super) struct SpeechInput {
    /// Base64.
    audio: String,
    #[serde(default)]
    mime_type: String,
    #[serde(default)]
    filename: String,
}

#[derive(Serialize, ToSchema)]
pub(super) struct CopilotTranscription {
    text: String,
}

/// Transcribes a recording.
///
/// The body is a form with a file, or JSON. Nothing is stored.
#[utoipa::path(
    post,
    path = "/transcribe",
    request_body(content(
        (Vec<u8> = "multipart/form-data"),
        (SpeechInput = "application/json"),
    ), description = "A file of sound."),
    responses(
        (status = 200, description = "The text.", body = CopilotTranscription),
        (status = 400, description = "No sound, or none that can be transcribed.", body = CopilotTranscriptionRefusal),
        (status = 429, description = "Too many recordings at once.", body = CopilotTranscriptionRefusal),
        (status = 502, description = "The service refuses or fails.", body = CopilotTranscriptionRefusal),
        (status = 503, description = "The server has no service.", body = CopilotTranscriptionRefusal),
    ),
)]
pub(super) async fn transcribe_copilot_speech(
    State(app): State<App>,
    Extension(transcriber): Extension<Transcriber>,
    Speaker(owner): Speaker,
    request: Request,
) -> Result<Json<CopilotTranscription>, TranscriptionError> {
    let (head, body) = request.into_parts();
    let body = read_body::read(&app, &head, body).await?;
    // After the body: a client that is still sending may not read a refusal.
    let service = transcriber.service.ok_or(TranscriptionError::NotConfigured)?;
    let _permit =
        transcriber.permits.try_take(&owner, 1).map_err(|_| TranscriptionError::RateLimited)?;
    let speech = speech_of(&head, body)?;
    if speech.bytes.is_empty() {
        return Err(TranscriptionError::TooShort);
    }
    if !may_be_sound(&speech.media_type) {
        return Err(TranscriptionError::Format(short_name(&speech.media_type)));
    }
    Ok(Json(CopilotTranscription { text: service.transcribe(speech).await? }))
}

fn speech_of(head: &Parts, body: Bytes) -> Result<Speech, TranscriptionError> {
    let content_type = head
        .headers
        .get(header::CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    if essence(content_type) != "application/json" {
        return Ok(file_of_form(&body, content_type)?);
    }
    let SpeechInput { audio, mime_type, filename } =
        decode_members(&body).map_err(ApiError::from)?;
    let bytes = LENIENT.decode(audio).map_err(|_| ApiError::invalid_input("audio", "base64"))?;
    Ok(Speech { bytes: bytes.into(), media_type: mime_type, name: filename })
}

/// Browsers call a recording of sound alone `video/webm` or `video/mp4` as well, and some say nothing.
fn may_be_sound(media_type: &str) -> bool {
    let media_type = essence(media_type);
    media_type.starts_with("audio/")
        || matches!(
            media_type.as_str(),
            "" | "application/octet-stream" | "video/webm" | "video/mp4"
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_of_bodies_have_codes_of_copilotkit() {
        let code = |error: ApiError| TranscriptionError::from(error).refusal().1;
        assert_eq!(code(ApiError::BodyTooLarge(1)), "audio_too_long");
        assert_eq!(code(ApiError::TooManyBodyBytes), "rate_limited");
        assert_eq!(code(ApiError::BodyTimeout), "invalid_request");
    }
}
