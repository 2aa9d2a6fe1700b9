//! Models with OpenAI's chat completions, which nearly all other providers also offer.

mod calls;
mod decoder;
mod options;
mod request;
mod usage;

use std::{fmt, sync::Arc};

use http::{HeaderMap, HeaderName, header::AUTHORIZATION};

pub use self::options::OpenAiOptions;
use self::{decoder::ChatDecoder, options::PROVIDER, request::Dialect};
use super::{
    Model, ModelRequest, ModelStream,
    transport::{SetupError, Transport},
};

const BASE_URL: &str = "https://api.openai.com/v1";
/// Domains of providers that refuse a request with tool calls but without the reasoning before them.
const RETURN_REASONING_HOSTS: &[&str] = &["deepseek.com", "moonshot.ai", "moonshot.cn", "z.ai", "bigmodel.cn"];

/// A model with chat completions, at OpenAI or at a compatible provider.
pub struct OpenAi {
    options: OpenAiOptions,
    dialect: Dialect,
    transport: Arc<Transport>,
}

impl OpenAi {
    /// A model with these options.
    ///
    /// # Errors
    /// If the base URL, the key or a header is invalid.
    pub fn new(options: OpenAiOptions) -> Result<Self, SetupError> {
        let mut url = options.connection.url(BASE_URL)?;
        let path = url.path().trim_end_matches('/').trim_end_matches("/chat/completions");
        url.set_path(&format!("{path}/chat/completions"));
        let host = url.host_str().unwrap_or_default().to_ascii_lowercase();
        let within = |domain: &str| host == domain || host.ends_with(&format!(".{domain}"));
        let azure = within("azure.com");
        let mut headers = HeaderMap::new();
        if let Some(value) = options.connection.key_header("Bearer ")? {
            headers.insert(AUTHORIZATION, value);
        }
        if azure && let Some(value) = options.connection.key_header("")? {
            headers.insert(HeaderName::from_static("api-key"), value);
        }
        let dialect = Dialect {
            completion_tokens: azure || within("openai.com"),
            return_reasoning: options
                .return_reasoning
                .unwrap_or_else(|| RETURN_REASONING_HOSTS.iter().any(|domain| within(domain))),
        };
        let transport = Arc::new(Transport::new(options.connection.clone(), url, headers)?);
        Ok(Self { options, dialect, transport })
    }
}

impl fmt::Debug for OpenAi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OpenAi").field(&self.options).finish()
    }
}

impl Model for OpenAi {
    fn provider(&self) -> &str {
        PROVIDER
    }

    fn name(&self) -> &str {
        &self.options.model
    }

    fn stream(&self, request: ModelRequest) -> ModelStream {
        let body = request::body(&self.options, self.dialect, &request).to_string().into();
        let model = self.options.model.clone();
        self.transport.clone().stream(body, HeaderMap::new(), move || ChatDecoder::new(&model))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::llm::transport::Connection;

    fn at(base_url: Option<&str>, return_reasoning: Option<bool>) -> OpenAi {
        let connection = Connection {
            base_url: base_url.map(str::to_owned),
            api_key: Some("a-key".into()),
            ..Connection::default()
        };
        OpenAi::new(OpenAiOptions { connection, return_reasoning, ..OpenAiOptions::default() }).unwrap()
    }

    #[test]
    fn the_provider_is_recognised_by_its_domain() {
        let azure = Some("https://mine.openai.azure.com/openai/v1?api-version=preview");
        for (url, api_key, completion_tokens, return_reasoning) in [
            (None, None, true, false),
            (azure, Some("a-key"), true, false),
            (Some("https://mine.azure.com.example.org"), None, false, false),
            (Some("https://api.deepseek.com"), None, false, true),
            (Some("https://API.Moonshot.ai/v1"), None, false, true),
            (Some("https://notdeepseek.com"), None, false, false),
            (Some("http://localhost:11434/v1"), None, false, false),
        ] {
            let model = at(url, None);
            assert_eq!(model.transport.header(&HeaderName::from_static("api-key")), api_key, "{url:?}");
            assert_eq!(model.transport.header(&AUTHORIZATION), Some("Bearer a-key"), "{url:?}");
            assert_eq!(model.dialect.completion_tokens, completion_tokens, "{url:?}");
            assert_eq!(model.dialect.return_reasoning, return_reasoning, "{url:?}");
        }
        assert!(at(None, Some(true)).dialect.return_reasoning);
        assert!(!at(Some("https://api.deepseek.com"), Some(false)).dialect.return_reasoning);
    }
}
