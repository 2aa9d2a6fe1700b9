//! The client of the service that makes text of speech: OpenAI's `POST /audio/transcriptions`, which Whisper servers have.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use reqwest::{Client, RequestBuilder, Response, StatusCode, header::CONTENT_TYPE};
use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;
use uuid::Uuid;

use crate::{
    clients::{Speech, Transcribe, TranscriptionError},
    server::options::{Config, ConfigError, Origin, TranscriptionConfig},
};
use agui_agent::files::shown_type;
use agui_base::upstream::{
    ClientOptions,
    body::{read_excerpt, read_whole},
    client,
    scrub::Scrubber,
    secret_names::secret_variable,
};

/// The largest answer, in bytes: hours of speech.
const MAX_ANSWER_BYTES: usize = 4 * 1024 * 1024;
const MAX_EXCERPT_BYTES: usize = 1024;
const EXCERPT_TIME: Duration = Duration::from_secs(2);

struct TranscriptionService {
    client: Client,
    url: String,
    api_key: Option<SecretString>,
    /// The service may repeat the key.
    scrubber: Scrubber,
    options: TranscriptionConfig,
}

#[derive(Deserialize)]
struct Answer {
    text: String,
}

pub(in crate::server) fn build_transcription(
    config: &Config,
    origin: &Origin,
) -> Result<Option<Arc<dyn Transcribe>>, ConfigError> {
    let options = config.transcription.clone();
    let Some(base_url) = options.base_url.as_deref() else { return Ok(None) };
    let fault = |option: &str, problem: &str| origin.error(&["transcription", option], problem);
    let key = options.api_key_env.as_deref().map(secret_variable).transpose();
    let api_key = key.map_err(|problem| fault("api_key_env", &problem))?.map(SecretString::from);
    let client =
        client(&ClientOptions::default()).map_err(|error| fault("base_url", &error.to_string()))?;
    let url = format!("{}/audio/transcriptions", base_url.trim_end_matches('/'));
    let secrets = api_key.iter().map(|key| key.expose_secret().to_owned()).collect();
    let scrubber = Scrubber::new(secrets, "");
    Ok(Some(Arc::new(TranscriptionService { client, url, api_key, scrubber, options })))
}

#[async_trait]
impl Transcribe for TranscriptionService {
    async fn transcribe(&self, speech: Speech) -> Result<String, TranscriptionError> {
        let response = self.request(&speech).send().await.map_err(|error| {
            // Without the URL, which may have a secret.
            let error = error.without_url();
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "the transcription service does not answer"
            );
            TranscriptionError::Unreachable
        })?;
        if !response.status().is_success() {
            return Err(self.refused(response, &speech.media_type).await);
        }
        let failed = |error: &dyn std::fmt::Display| {
            let error = self.scrubber.scrub(&error.to_string());
            tracing::warn!(error, "the transcription service's answer cannot be read");
            TranscriptionError::Failed
        };
        let body = read_whole(response, MAX_ANSWER_BYTES).await.map_err(|error| failed(&error))?;
        let answer: Answer = serde_json::from_slice(&body).map_err(|error| failed(&error))?;
        Ok(answer.text)
    }
}

impl TranscriptionService {
    fn request(&self, speech: &Speech) -> RequestBuilder {
        let boundary = Uuid::new_v4().simple().to_string();
        let mut fields = vec![("model", self.options.model.as_str()), ("response_format", "json")];
        fields.extend(self.options.language.as_deref().map(|language| ("language", language)));
        let request = self.client.post(&self.url).timeout(self.options.timeout);
        let request =
            request.header(CONTENT_TYPE, format!("multipart/form-data; boundary={boundary}"));
        let request = request.body(form(&boundary, &fields, speech));
        match &self.api_key {
            Some(key) => request.bearer_auth(key.expose_secret()),
            None => request,
        }
    }

    async fn refused(&self, response: Response, media_type: &str) -> TranscriptionError {
        let status = response.status();
        let excerpt = read_excerpt(response, MAX_EXCERPT_BYTES, EXCERPT_TIME).await;
        let excerpt = self.scrubber.scrub(&String::from_utf8_lossy(&excerpt));
        tracing::warn!(
            status = status.as_u16(),
            answer = excerpt,
            "the transcription service refuses a recording"
        );
        let words = excerpt.to_ascii_lowercase();
        match status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => TranscriptionError::Unauthorized,
            StatusCode::TOO_MANY_REQUESTS => TranscriptionError::RateLimited,
            StatusCode::PAYLOAD_TOO_LARGE => TranscriptionError::TooLong,
            StatusCode::UNSUPPORTED_MEDIA_TYPE => TranscriptionError::Format(media_type.to_owned()),
            StatusCode::BAD_REQUEST if words.contains("too short") => TranscriptionError::TooShort,
            StatusCode::BAD_REQUEST
                if words.contains("too long") || words.contains("too large") =>
            {
                TranscriptionError::TooLong
            }
            StatusCode::BAD_REQUEST if words.contains("format") => {
                TranscriptionError::Format(media_type.to_owned())
            }
            _ => TranscriptionError::Failed,
        }
    }
}

/// Writes a form of the fields and of a file (RFC 7578).
fn form(boundary: &str, fields: &[(&str, &str)], speech: &Speech) -> Vec<u8> {
    let mut form = String::new();
    for (name, value) in fields {
        form += &format!(
            "--{boundary}\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n"
        );
    }
    let name = file_name(speech);
    form += &format!(
        "--{boundary}\r\nContent-Disposition: form-data; name=\"file\"; filename=\"{name}\"\r\n"
    );
    form += "Content-Type: application/octet-stream\r\n\r\n";
    let mut form = form.into_bytes();
    form.extend_from_slice(&speech.bytes);
    form.extend_from_slice(format!("\r\n--{boundary}--\r\n").as_bytes());
    form
}

/// Services take the type from the end of the name, and pages call what Safari records (MP4) `recording.webm` as well. So the name
/// follows the bytes.
fn file_name(speech: &Speech) -> String {
    let extension = match shown_type(&speech.bytes, "") {
        Some("audio/wav") => "wav",
        Some("audio/mpeg") => "mp3",
        Some("audio/flac") => "flac",
        Some("audio/ogg") => "ogg",
        Some("video/webm") => "webm",
        Some("audio/mp4" | "video/mp4" | "video/quicktime") => "mp4",
        _ => {
            let given =
                speech.name.rsplit_once('.').map(|(_, extension)| extension.to_ascii_lowercase());
            return format!(
                "speech.{}",
                given.filter(|given| is_extension(given)).as_deref().unwrap_or("webm")
            );
        }
    };
    format!("speech.{extension}")
}

fn is_extension(text: &str) -> bool {
    (1..=4).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Default)]
    struct Log(Arc<std::sync::Mutex<Vec<u8>>>);

    impl std::io::Write for Log {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[tokio::test]
    async fn a_service_that_repeats_the_key_puts_it_into_no_log() {
        const KEY: &str = "plainwordsfortests";
        let log = Log::default();
        let written = log.clone();
        let _logged = tracing::subscriber::set_default(
            tracing_subscriber::fmt().with_writer(move || written.clone()).finish(),
        );
        for (status, says) in [(401, format!("no account for {KEY}")), (200, format!("{KEY:?}"))] {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            let url = format!("http://{}/", listener.local_addr().unwrap());
            let status = StatusCode::from_u16(status).unwrap();
            let respond = axum::Router::new().fallback(move || async move { (status, says) });
            let server = tokio::spawn(async move { axum::serve(listener, respond).await });
            let service = TranscriptionService {
                client: client(&ClientOptions::default()).unwrap(),
                url,
                api_key: Some(KEY.into()),
                scrubber: Scrubber::new(vec![KEY.to_owned()], ""),
                options: TranscriptionConfig::default(),
            };
            let speech = Speech {
                bytes: vec![1].into(),
                media_type: "audio/webm".to_owned(),
                name: String::new(),
            };
            service.transcribe(speech).await.unwrap_err();
            server.abort();
        }
        let log = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
        for said in ["no account for [secret]", "string \\\"[secret]\\\""] {
            assert!(log.contains(said), "{said} is not in {log}");
        }
        assert!(!log.contains("plainwords"), "{log}");
    }

    #[test]
    fn the_name_of_a_recording_is_that_of_its_bytes() {
        let name = |bytes: &'static [u8], name: &str| {
            file_name(&Speech {
                bytes: bytes.into(),
                media_type: "audio/webm".to_owned(),
                name: name.to_owned(),
            })
        };
        assert_eq!(name(b"\x1a\x45\xdf\xa3....", "recording.webm"), "speech.webm");
        assert_eq!(name(b"\0\0\0\x1cftypiso5....", "recording.webm"), "speech.mp4");
        assert_eq!(name(b"OggS....", ""), "speech.ogg");
        assert_eq!(name(b"\xff\xfb\x90\0", "memo.MP3"), "speech.mp3");
        assert_eq!(name(b"....", "a.\"\r\nx: y"), "speech.webm");
    }
}
