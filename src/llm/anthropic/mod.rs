//! Models with Anthropic's Messages API.

mod content;
mod decoder;
mod options;
mod request;
mod usage;

use std::{fmt, sync::Arc};

use http::{HeaderMap, HeaderName, HeaderValue};

pub use self::options::{AnthropicOptions, Thinking};
use self::{decoder::MessageDecoder, options::PROVIDER};
use super::{
    Model, ModelRequest, ModelStream,
    transport::{SetupError, Transport},
};

const BASE_URL: &str = "https://api.anthropic.com";
const BETA: HeaderName = HeaderName::from_static("anthropic-beta");
const FILES_BETA: &str = "files-api-2025-04-14";

/// A model with the Messages API, at Anthropic or at a compatible provider.
pub struct Anthropic {
    options: AnthropicOptions,
    /// Beta features that the connection's headers enable.
    betas: Option<String>,
    transport: Arc<Transport>,
}

impl Anthropic {
    /// A model with these options.
    ///
    /// # Errors
    /// If the base URL, the key or a header is invalid.
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

impl fmt::Debug for Anthropic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Anthropic").field(&self.options).finish()
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
            let betas =
                self.betas.as_ref().map_or_else(|| FILES_BETA.to_owned(), |betas| format!("{betas},{FILES_BETA}"));
            more.extend(HeaderValue::try_from(betas).ok().map(|value| (BETA, value)));
        }
        let model = self.options.model.clone();
        self.transport.clone().stream(body.json.to_string().into(), more, move || MessageDecoder::new(&model))
    }
}
