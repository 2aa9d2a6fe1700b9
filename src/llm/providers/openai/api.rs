//! The two APIs of OpenAI, which of them a model gets, and how both are reached.

use std::sync::Arc;

use http::{HeaderMap, HeaderName, header::AUTHORIZATION};
use reqwest::Url;
use serde::Deserialize;

use crate::llm::{
    known_models::KnownModels,
    transport::{Connection, RecordedExchanges, SetupError, Transport, is_of_domain},
};

pub(in crate::llm) const BASE_URL: &str = "https://api.openai.com/v1";
/// The header in which Azure takes a key.
pub(in crate::llm) const AZURE_KEY: HeaderName = HeaderName::from_static("api-key");

/// An API of OpenAI.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub(crate) enum OpenAiApi {
    /// Chat completions, which many other servers have.
    Chat,
    /// The Responses API.
    Responses,
}

impl OpenAiApi {
    /// Returns the API for a model: at `api.openai.com`, the Responses API for models that reason and for all models
    /// since gpt-5, as <https://developers.openai.com/api/docs/guides/deployment-checklist> advises; chat completions for
    /// older models, and at other servers. `base_url` is `None` for OpenAI's own.
    pub(crate) fn for_model(known: &KnownModels, model: &str, base_url: Option<&str>) -> Self {
        let is_openai =
            base_url.is_none_or(|url| Url::parse(url).is_ok_and(|url| is_of_domain(&url, "api.openai.com")));
        match known.openai(model) {
            Some(rules) if is_openai && !rules.chat_only && (rules.reasons || rules.has_verbosity) => Self::Responses,
            _ => Self::Chat,
        }
    }
}

/// Returns the transport to an API whose path ends with `endpoint`. The key is also sent in `key_header`.
pub(in crate::llm) fn transport(
    connection: Connection,
    exchanges: Option<RecordedExchanges>,
    mut url: Url,
    endpoint: &str,
    key_header: Option<HeaderName>,
) -> Result<Arc<Transport>, SetupError> {
    let path = url.path().trim_end_matches('/').trim_end_matches(endpoint);
    url.set_path(&format!("{path}{endpoint}"));
    let mut headers = HeaderMap::new();
    for (name, prefix) in [(Some(AUTHORIZATION), "Bearer "), (key_header, "")] {
        let key = connection.key_header(prefix)?;
        headers.extend(name.zip(key));
    }
    Ok(Arc::new(Transport::new(connection, exchanges, url, headers)?))
}
