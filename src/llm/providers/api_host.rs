//! Where an API of a vendor is served: by the vendor itself or a compatible server, or by a cloud, where requests have another
//! URL, another body and another key.

use http::header::AUTHORIZATION;
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
}

impl ApiHost {
    /// Returns the host and the base URL. A cloud is known by its credentials, or by the URL, because its key may also come from
    /// a command.
    pub(super) fn of(options: &ModelOptions, default_url: &str) -> Result<(Self, Url), SetupError> {
        let url = options.url(default_url)?;
        let host = match options.credentials {
            Some(CloudCredentials::Gcp) => Self::Vertex,
            None if VERTEX_FOLDERS.iter().all(|folder| url.path().contains(folder)) => Self::Vertex,
            None => Self::Vendor,
        };
        Ok((host, url))
    }

    /// Returns where the key stands that the vendor takes at `own`.
    pub(super) fn key_place(self, own: KeyPlace) -> KeyPlace {
        match self {
            Self::Vendor => own,
            Self::Vertex => (AUTHORIZATION, "Bearer "),
        }
    }

    /// Changes a request of the Messages API to that of a cloud. `base` is the base URL.
    pub(super) fn address_claude(self, base: &Url, model: &str, sent: &mut ProviderRequest) {
        let Value::Object(body) = &mut sent.json else { return };
        match self {
            Self::Vendor => {}
            Self::Vertex => {
                body.shift_remove("model");
                body.entry("anthropic_version").or_insert("vertex-2023-10-16".into());
                sent.url = Some(with_path(base, &format!("publishers/anthropic/models/{model}:streamRawPredict")));
            }
        }
    }

    /// Returns the folder of Gemini's models.
    pub(super) fn gemini_models(self) -> &'static str {
        match self {
            Self::Vertex => "publishers/google/models/",
            Self::Vendor => "models/",
        }
    }
}

fn with_path(base: &Url, path: &str) -> Url {
    let mut url = base.clone();
    url.set_path(&format!("{}/{path}", base.path().trim_end_matches('/')));
    url
}
