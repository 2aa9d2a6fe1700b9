//! Anthropic's Messages API.

mod content;
mod decoder;
mod request;
mod usage;

use std::sync::Arc;

use http::{HeaderMap, HeaderName, HeaderValue};

use self::decoder::MessageDecoder;
use super::{
    Model, ModelRequest, ModelStream,
    transport::{Connection, SetupError, Transport},
};

/// The provider's own address.
const BASE_URL: &str = "https://api.anthropic.com";
/// What this provider is called in the protocol.
const PROVIDER: &str = "anthropic";
/// Switches on what is not for everybody yet.
const BETA: HeaderName = HeaderName::from_static("anthropic-beta");
/// What a handle of a file needs.
const FILES: &str = "files-api-2025-04-14";

/// How a model thinks, when it does.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Thinking {
    /// With so many tokens at most, at least 1024. Models from before Claude 4.6 know nothing else, those from Opus
    /// 4.7 on do not know it any more.
    Budget(u32),
    /// As much as it sees fit.
    Adaptive {
        /// A hint: `low`, `medium`, `high` or what else the model knows.
        effort: Option<String>,
    },
}

impl Default for Thinking {
    fn default() -> Self {
        Self::Budget(4096)
    }
}

/// A model that is asked by the Messages API.
#[derive(Debug, Clone)]
pub struct AnthropicOptions {
    /// The model's name.
    pub model: String,
    /// The way to the provider; the base URL is `https://api.anthropic.com` unless another is given.
    pub connection: Connection,
    /// The most tokens of an answer, thinking included. A budget for thinking that leaves no room is added to it.
    pub max_tokens: u32,
    /// How much chance is in the answer. It is left out when the model thinks, which allows no other than its own.
    pub temperature: Option<f64>,
    /// Whether the model thinks when a request leaves it open.
    pub think: bool,
    /// How it thinks.
    pub thinking: Thinking,
    /// Whether the provider is asked to remember the conversation up to here, which makes the next turn cheaper and
    /// this one a little dearer.
    pub cache: bool,
}

impl Default for AnthropicOptions {
    fn default() -> Self {
        Self {
            model: String::new(),
            connection: Connection::default(),
            max_tokens: 8192,
            temperature: None,
            think: false,
            thinking: Thinking::default(),
            cache: true,
        }
    }
}

/// A model that speaks the Messages API.
pub struct Anthropic {
    options: AnthropicOptions,
    /// What the configuration has switched on already.
    betas: Option<String>,
    transport: Arc<Transport>,
}

impl Anthropic {
    /// A model at Anthropic, or at another provider that speaks like it.
    ///
    /// # Errors
    /// When the base URL, the key or a header cannot be used.
    pub fn new(options: AnthropicOptions) -> Result<Self, SetupError> {
        let mut url = options.connection.url(BASE_URL)?;
        let path = url.path().trim_end_matches('/').trim_end_matches("/messages").trim_end_matches("/v1");
        url.set_path(&format!("{path}/v1/messages"));
        let mut headers = HeaderMap::new();
        headers.insert("anthropic-version", HeaderValue::from_static("2023-06-01"));
        if let Some(value) = options.connection.key_header("")? {
            headers.insert("x-api-key", value);
        }
        let transport = Transport::new(options.connection.clone(), url, headers)?;
        let betas = transport.header(&BETA).map(str::to_owned);
        Ok(Self { options, betas, transport: Arc::new(transport) })
    }
}

impl Model for Anthropic {
    fn provider(&self) -> &str {
        PROVIDER
    }

    fn name(&self) -> &str {
        &self.options.model
    }

    fn stream(&self, request: ModelRequest) -> ModelStream {
        let body = request::body(&self.options, &request);
        let mut more = HeaderMap::new();
        if body.has_files {
            let betas = self.betas.as_ref().map_or_else(|| FILES.to_owned(), |betas| format!("{betas},{FILES}"));
            // What the configuration has was a header already.
            more.extend(HeaderValue::try_from(betas).ok().map(|value| (BETA, value)));
        }
        let model = self.options.model.clone();
        self.transport.clone().stream(body.json.to_string().into(), more, move || MessageDecoder::new(&model))
    }
}
