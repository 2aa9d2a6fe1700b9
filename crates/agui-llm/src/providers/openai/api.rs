//! The two APIs of OpenAI, and the choice between them.

use reqwest::Url;
use serde::Deserialize;

use crate::{known_models::KnownModels, transport::is_in_domain};

/// An API of OpenAI.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum OpenAiApi {
    /// Chat completions, which many other servers have.
    Chat,
    /// The Responses API.
    Responses,
}

impl OpenAiApi {
    /// Returns the API for a model: at `api.openai.com`, the Responses API for models that reason and for all models
    /// since gpt-5, as <https://developers.openai.com/api/docs/guides/deployment-checklist> advises; chat completions for
    /// older models, and at other servers. `base_url` is `None` for OpenAI's own.
    pub fn for_model(known: &KnownModels, model: &str, base_url: Option<&str>) -> Self {
        let is_openai = base_url.is_none_or(|url| {
            Url::parse(url).is_ok_and(|url| is_in_domain(&url, "api.openai.com"))
        });
        match known.openai(model) {
            Some(rules)
                if is_openai && !rules.chat_only && (rules.reasons || rules.has_verbosity) =>
            {
                Self::Responses
            }
            _ => Self::Chat,
        }
    }
}
