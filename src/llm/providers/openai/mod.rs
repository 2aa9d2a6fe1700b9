//! OpenAI's models: the choice between its two APIs, and what both have in common: efforts, warnings, strict schemas.

pub(in crate::llm) mod api;
pub(super) mod effort;
pub(super) mod strict_schema;
pub(super) mod warnings;

use std::{fmt, sync::Arc};

use self::api::OpenAiApi;
use super::{chat::OpenAiChat, responses::OpenAiResponses};
use crate::llm::{Connection, Model, ModelOptions, ModelRequest, ModelStream, SetupError};

/// A model of OpenAI, or of a server with OpenAI's API.
///
/// ```no_run
/// use agui_server::{llm::{LlmAgent, OpenAi}, prelude::*};
///
/// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
/// let agent = LlmAgent::new(OpenAi::from_env("gpt-5-mini")?).system_prompt("You are brief.");
/// Server::new().agent("chat", agent).serve("127.0.0.1:8080").await?;
/// # Ok(())
/// # }
/// ```
pub struct OpenAi(Arc<dyn Model>);

impl OpenAi {
    /// A model of OpenAI, with the key in the environment variable `OPENAI_API_KEY`.
    ///
    /// # Errors
    /// If the variable is not set, or its value is no key.
    pub fn from_env(model: impl Into<String>) -> Result<Self, SetupError> {
        Self::new(ModelOptions::new(model, Connection::from_env("OPENAI_API_KEY")?))
    }

    /// A model of another server with OpenAI's API, without a key: `OpenAi::at("http://localhost:11434/v1", "llama3.2")`
    /// is one of Ollama. [`OpenAi::new`] takes a key, too.
    ///
    /// # Errors
    /// If the URL is invalid.
    pub fn at(url: impl Into<String>, model: impl Into<String>) -> Result<Self, SetupError> {
        Self::new(ModelOptions::new(model, Connection { base_url: Some(url.into()), ..Connection::default() }))
    }

    /// A model with these options. At OpenAI, models that reason and all models since gpt-5 get the Responses API
    /// ([`OpenAiResponses`]); older models, and models of other servers, chat completions ([`OpenAiChat`]).
    ///
    /// # Errors
    /// If the base URL, the key, a header or an option is invalid, or if the API lacks an option.
    pub fn new(options: ModelOptions) -> Result<Self, SetupError> {
        let base_url = options.connection.base_url.as_deref();
        Ok(Self(match OpenAiApi::for_model(&options.known_models, &options.model, base_url) {
            OpenAiApi::Chat => Arc::new(OpenAiChat::new(options)?),
            OpenAiApi::Responses => Arc::new(OpenAiResponses::new(options)?),
        }))
    }
}

impl Model for OpenAi {
    fn provider(&self) -> &str {
        self.0.provider()
    }

    fn name(&self) -> &str {
        self.0.name()
    }

    fn stream(&self, request: ModelRequest) -> ModelStream {
        self.0.stream(request)
    }

    fn warnings(&self) -> Vec<String> {
        self.0.warnings()
    }
}

impl fmt::Debug for OpenAi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OpenAi").field(&self.name()).finish()
    }
}
