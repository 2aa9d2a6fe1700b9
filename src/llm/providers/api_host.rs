//! Where an API of a vendor is served: by the vendor itself or a compatible server, or by a cloud, where requests have another
//! URL, another body and another key.

use http::{
    HeaderValue,
    header::{ACCEPT, AUTHORIZATION},
};
use reqwest::Url;
use serde_json::Value;

use crate::llm::{
    CloudCredentials, ModelOptions, SetupError,
    transport::{KeyPlace, ProviderRequest},
};

/// The folders in URLs of Vertex AI.
const VERTEX_FOLDERS: [&str; 2] = ["/projects/", "/locations/"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ApiHost {
    Vendor,
    /// <https://platform.claude.com/docs/en/build-with-claude/claude-on-vertex-ai>
    Vertex,
    /// <https://docs.aws.amazon.com/bedrock/latest/userguide/model-parameters-anthropic-claude-messages.html>
    Bedrock,
}

impl ApiHost {
    /// Returns the host and the base URL. A cloud is known by its credentials, or by the URL, because its key may also come from
    /// a command.
    pub(super) fn of(options: &ModelOptions, default_url: &str) -> Result<(Self, Url), SetupError> {
        let url = options.url(default_url)?;
        let host = match options.credentials {
            Some(CloudCredentials::Gcp) => Self::Vertex,
            Some(CloudCredentials::Aws) => Self::Bedrock,
            None if url.host_str().is_some_and(is_bedrock) => Self::Bedrock,
            None if VERTEX_FOLDERS.iter().all(|folder| url.path().contains(folder)) => Self::Vertex,
            None => Self::Vendor,
        };
        Ok((host, url))
    }

    /// Returns where the key stands that the vendor takes at `own`.
    pub(super) fn key_place(self, own: KeyPlace) -> KeyPlace {
        match self {
            Self::Vendor => own,
            Self::Vertex | Self::Bedrock => (AUTHORIZATION, "Bearer "),
        }
    }

    /// Changes a request of the Messages API to that of a cloud. `base` is the base URL, `betas` are all beta features.
    pub(super) fn address_claude(self, base: &Url, model: &str, betas: &[&str], sent: &mut ProviderRequest) {
        let Value::Object(body) = &mut sent.json else { return };
        let mut url = base.clone();
        let version = match self {
            Self::Vendor => return,
            Self::Vertex => {
                let path = base.path().trim_end_matches('/');
                url.set_path(&format!("{path}/publishers/anthropic/models/{model}:streamRawPredict"));
                "vertex-2023-10-16"
            }
            Self::Bedrock => {
                if let Ok(mut path) = url.path_segments_mut() {
                    // A model may be an ARN with a `/`, which is encoded.
                    path.pop_if_empty().extend(["model", model, "invoke-with-response-stream"]);
                }
                body.shift_remove("stream");
                if !betas.is_empty() {
                    body.entry("anthropic_beta").or_insert(betas.into());
                }
                sent.headers.insert(ACCEPT, HeaderValue::from_static("application/vnd.amazon.eventstream"));
                "bedrock-2023-05-31"
            }
        };
        body.shift_remove("model");
        body.entry("anthropic_version").or_insert(version.into());
        sent.url = Some(url);
    }

    /// Returns the folder of Gemini's models.
    pub(super) fn gemini_models(self) -> &'static str {
        match self {
            Self::Vertex => "publishers/google/models/",
            Self::Vendor | Self::Bedrock => "models/",
        }
    }
}

fn is_bedrock(host: &str) -> bool {
    host.ends_with(".amazonaws.com") && host.split('.').any(|label| label.starts_with("bedrock-runtime"))
}
