//! The section `[transcription]`.

use std::time::Duration;

use serde::Deserialize;
use smart_default::SmartDefault;

use super::{diagnose::ConfigError, origin::Origin};
use agui_base::{
    units,
    upstream::trust::{is_trusted_url, server_url},
};

/// The service that transcribes speech: one with OpenAI's `POST /audio/transcriptions`, such as a
/// Whisper server.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, SmartDefault)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub(crate) struct TranscriptionConfig {
    /// The URL before `/audio/transcriptions`, such as `https://api.openai.com/v1`, or that of a
    /// Whisper server. If not set, pages have no microphone.
    pub(crate) base_url: Option<String>,
    /// The model.
    #[default("whisper-1".to_owned())]
    pub(crate) model: String,
    /// The environment variable with the key. A service without one may be at `http://`.
    pub(crate) api_key_env: Option<String>,
    /// The language that people speak, such as `de` (ISO 639-1). If not set, the service finds out.
    pub(crate) language: Option<String>,
    /// The time limit for one recording.
    #[serde(rename = "timeout_secs", with = "units::Seconds")]
    #[default(Duration::from_secs(60))]
    pub(crate) timeout: Duration,
}

pub(super) fn check(
    transcription: &TranscriptionConfig,
    origin: &Origin,
) -> Result<(), ConfigError> {
    let error =
        |option: &str, problem: &str| Err(origin.error(&["transcription", option], problem));
    let Some(url) = transcription.base_url.as_deref() else {
        return match transcription.api_key_env {
            Some(_) => error("api_key_env", "a key needs `base_url`, the service that it is for"),
            None => Ok(()),
        };
    };
    if server_url(url).is_none() {
        return error(
            "base_url",
            "expected a URL such as \"https://api.openai.com/v1\"; keys go into `api_key_env`",
        );
    }
    if transcription.api_key_env.is_some() && !is_trusted_url(url) {
        return error("base_url", "a key is sent to https:// or this machine only");
    }
    Ok(())
}
