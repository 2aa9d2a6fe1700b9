//! Models with OpenAI's Responses API, which OpenAI's current models need for tools and reasoning.
//!
//! Requests are stateless: each one contains the whole conversation, and the service stores nothing (`store: false`).
//! The shapes are those of <https://developers.openai.com/api/reference/resources/responses/methods/create>.

mod content;
pub(in crate::llm) mod decoder;
mod input;
mod items;
mod request;

use std::{fmt, sync::Arc};

use self::decoder::ResponsesDecoder;
use crate::llm::{
    Model, ModelOptions, ModelRequest, ModelStream,
    providers::openai::{
        api::{self, AZURE_KEY, BASE_URL, OpenAiApi},
        warnings::openai_warnings,
    },
    providers::wire::OPENAI,
    transport::{SetupError, Transport},
};

/// Options that the Responses API lacks.
const LACKING: &[&str] =
    &["top_k", "seed", "frequency_penalty", "presence_penalty", "stop", "thinking_budget", "profile"];
/// The first and the last events repeat the request's instructions and tools, and the last one the whole answer.
const MAX_EVENT_BYTES: usize = 4 << 20;

/// A model with the Responses API, at OpenAI or at a compatible provider.
pub struct OpenAiResponses {
    options: ModelOptions,
    transport: Arc<Transport>,
}

impl OpenAiResponses {
    /// A model with these options.
    ///
    /// # Errors
    /// If the base URL, the key, a header or an option is invalid.
    pub fn new(options: ModelOptions) -> Result<Self, SetupError> {
        options.refuse(LACKING)?;
        let mut connection = options.connection.clone();
        connection.max_event_bytes.get_or_insert(MAX_EVENT_BYTES);
        let url = connection.url(BASE_URL)?;
        let profile = options.known_models.profile(None, &url)?;
        let key_header = profile.has_api_key_header.then_some(AZURE_KEY);
        let transport = api::transport(connection, options.exchanges.clone(), url, "/responses", key_header)?;
        Ok(Self { options, transport })
    }
}

impl fmt::Debug for OpenAiResponses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OpenAiResponses").field(&self.options).finish()
    }
}

impl Model for OpenAiResponses {
    fn provider(&self) -> &str {
        OPENAI
    }

    fn name(&self) -> &str {
        &self.options.model
    }

    fn stream(&self, request: ModelRequest) -> ModelStream {
        let body = request::body(&self.options, &request);
        let model = request.model.unwrap_or_else(|| self.options.model.clone());
        self.transport.stream(&body, request.trace, move || ResponsesDecoder::new(&model))
    }

    fn warnings(&self) -> Vec<String> {
        openai_warnings(&self.options, OpenAiApi::Responses)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::llm::Connection;

    #[test]
    fn azure_gets_the_key_in_its_own_header_too() {
        for (url, expected) in [
            ("https://mine.openai.azure.com/openai/v1", Some("a-key")),
            ("https://azure.com.example.org", None),
            ("https://api.openai.com/v1", None),
        ] {
            let connection =
                Connection { base_url: Some(url.to_owned()), api_key: Some("a-key".into()), ..Connection::default() };
            let model = OpenAiResponses::new(ModelOptions::new("m", connection)).unwrap();
            assert_eq!(model.transport.header(&AZURE_KEY), expected, "{url}");
        }
    }
}
