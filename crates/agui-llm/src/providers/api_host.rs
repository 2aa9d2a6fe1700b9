//! The host of a vendor's API: the vendor itself, a compatible server, or a cloud, whose requests
//! have another URL, another body and another key.

use http::{
    HeaderValue,
    header::{ACCEPT, AUTHORIZATION},
};
use reqwest::Url;
use serde_json::Value;

use crate::{
    ModelOptions, SetupError,
    transport::{CloudCredentials, KeyPlace, ProviderRequest},
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
    /// Returns the host and the base URL. A cloud is recognized by its credentials, or by the URL,
    /// because its key may also come from a command.
    pub(super) fn detect(options: &ModelOptions, default: &str) -> Result<(Self, Url), SetupError> {
        let url = options.url(default)?;
        let host = match options.credentials {
            Some(CloudCredentials::Gcp) => Self::Vertex,
            Some(CloudCredentials::Aws) => Self::Bedrock,
            None if url.host_str().is_some_and(is_bedrock) => Self::Bedrock,
            None if VERTEX_FOLDERS.iter().all(|folder| url.path().contains(folder)) => Self::Vertex,
            None => Self::Vendor,
        };
        Ok((host, url))
    }

    /// Returns the place of the key. `own` is the vendor's own place.
    pub(super) fn key_place(self, own: KeyPlace) -> KeyPlace {
        match self {
            Self::Vendor => own,
            Self::Vertex | Self::Bedrock => (AUTHORIZATION, "Bearer "),
        }
    }

    /// Changes a request of the Messages API into the request of a cloud. `base` is the base URL,
    /// `betas` are all beta features.
    pub(super) fn address_claude(
        self,
        base: &Url,
        model: &str,
        betas: &[&str],
        sent: &mut ProviderRequest,
    ) {
        let Value::Object(body) = &mut sent.json else { return };
        let mut url = base.clone();
        let version = match self {
            Self::Vendor => return,
            Self::Vertex => {
                let path = base.path().trim_end_matches('/');
                url.set_path(&format!(
                    "{path}/publishers/anthropic/models/{model}:streamRawPredict"
                ));
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
                sent.headers
                    .insert(ACCEPT, HeaderValue::from_static("application/vnd.amazon.eventstream"));
                "bedrock-2023-05-31"
            }
        };
        body.shift_remove("model");
        body.entry("anthropic_version").or_insert(version.into());
        sent.url = Some(url);
    }

    /// Completes a request of the Gemini API. `base` is the base URL.
    /// <https://ai.google.dev/api/generate-content#method:-models.streamgeneratecontent>
    pub(super) fn address_gemini(self, base: &Url, model: &str, sent: &mut ProviderRequest) {
        let folder = match self {
            _ if model.contains('/') => "",
            Self::Vertex => "publishers/google/models/",
            Self::Vendor | Self::Bedrock => "models/",
        };
        let mut url = base.clone();
        url.set_path(&format!(
            "{}/{folder}{model}:streamGenerateContent",
            base.path().trim_end_matches('/')
        ));
        url.query_pairs_mut().append_pair("alt", "sse");
        sent.url = Some(url);
        if self == Self::Vertex {
            remove_call_ids(&mut sent.json);
        }
    }
}

/// Removes the ids of calls, which Vertex AI does not know:
/// <https://github.com/vercel/ai/issues/15664>,
/// <https://github.com/langchain-ai/langchainjs/issues/10266>. Results follow their calls in the
/// same order.
fn remove_call_ids(body: &mut Value) {
    let contents = body.get_mut("contents").and_then(Value::as_array_mut).into_iter().flatten();
    for part in contents.filter_map(|content| content.get_mut("parts")?.as_array_mut()).flatten() {
        for member in ["functionCall", "functionResponse"] {
            if let Some(call) = part.get_mut(member).and_then(Value::as_object_mut) {
                call.shift_remove("id");
            }
        }
    }
}

fn is_bedrock(host: &str) -> bool {
    host.ends_with(".amazonaws.com")
        && host.split('.').any(|label| label.starts_with("bedrock-runtime"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Gemini, ProviderClient};

    fn options(base_url: Option<&str>) -> ModelOptions {
        let base_url = base_url.map(str::to_owned);
        ModelOptions::new("m", ProviderClient { base_url, ..ProviderClient::default() })
    }

    #[test]
    fn a_cloud_is_known_by_its_url_if_its_key_comes_from_elsewhere() {
        for (url, expected) in [
            (None, ApiHost::Vendor),
            (Some("https://bedrock-runtime.eu-west-1.amazonaws.com"), ApiHost::Bedrock),
            (
                Some("https://vpce-1.bedrock-runtime.eu-west-1.vpce.amazonaws.com/"),
                ApiHost::Bedrock,
            ),
            (Some("https://bedrock-runtime.example.org"), ApiHost::Vendor),
            (
                Some("https://aiplatform.googleapis.com/v1/projects/p/locations/global"),
                ApiHost::Vertex,
            ),
            (Some("https://gateway.example.org/projects/p/v1"), ApiHost::Vendor),
        ] {
            let (host, _) = ApiHost::detect(&options(url), "https://vendor").unwrap();
            assert_eq!(host, expected, "{url:?}");
            assert_eq!(host.key_place((ACCEPT, "")).0 == AUTHORIZATION, host != ApiHost::Vendor);
        }
    }

    #[test]
    fn credentials_need_the_url_of_a_cloud_that_serves_the_api() {
        let missing = ApiHost::detect(&options(None).with_gcp_credentials(), "https://vendor")
            .unwrap_err()
            .to_string();
        assert!(
            missing.starts_with("`base_url`: the credentials of a cloud need its URL"),
            "{missing}"
        );
        let other =
            Gemini::new(options(Some("http://h")).with_aws_credentials()).unwrap_err().to_string();
        assert_eq!(other, "`credentials`: AWS has no Gemini API");
    }
}
