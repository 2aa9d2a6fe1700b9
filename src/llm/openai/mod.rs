//! OpenAI's chat completions, which nearly every other provider and server of models speaks too.

mod calls;
mod decoder;
mod request;
mod usage;

use std::sync::Arc;

use http::{HeaderMap, HeaderName, header::AUTHORIZATION};

use self::{decoder::ChatDecoder, request::Dialect};
use super::{
    Model, ModelRequest, ModelStream,
    transport::{Connection, SetupError, Transport},
};

/// The provider's own address.
const BASE_URL: &str = "https://api.openai.com/v1";
/// What this provider is called in the protocol.
const PROVIDER: &str = "openai";
/// The hosts of providers that want a model's reasoning back with its calls, and refuse a request without it.
const WANT_REASONING: &[&str] = &["deepseek.com", "moonshot.ai", "moonshot.cn", "z.ai", "bigmodel.cn"];

/// A model that is asked by chat completions.
#[derive(Debug, Clone, Default)]
pub struct OpenAiOptions {
    /// The model's name.
    pub model: String,
    /// The way to the provider; the base URL is `https://api.openai.com/v1` unless another is given.
    pub connection: Connection,
    /// The most tokens of an answer, reasoning included.
    pub max_tokens: Option<u32>,
    /// How much chance is in the answer.
    pub temperature: Option<f64>,
    /// How much the model thinks: `low`, `medium`, `high` or what else it knows. If it is set, the model thinks
    /// unless a request says otherwise; if not, a request that wants it to think gets `medium`.
    pub reasoning_effort: Option<String>,
    /// Whether the model is given back what it thought before it called tools. `None` does so for the providers that
    /// are known to want it; others refuse what they do not know.
    pub return_reasoning: Option<bool>,
}

/// A model that speaks chat completions.
pub struct OpenAi {
    options: OpenAiOptions,
    dialect: Dialect,
    transport: Arc<Transport>,
}

impl OpenAi {
    /// A model at OpenAI, or at another provider that speaks like it.
    ///
    /// # Errors
    /// When the base URL, the key or a header cannot be used.
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
                .unwrap_or_else(|| WANT_REASONING.iter().any(|domain| within(domain))),
        };
        let transport = Arc::new(Transport::new(options.connection.clone(), url, headers)?);
        Ok(Self { options, dialect, transport })
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

    fn at(base_url: Option<&str>, return_reasoning: Option<bool>) -> OpenAi {
        let connection = Connection {
            base_url: base_url.map(str::to_owned),
            api_key: Some("a-key".into()),
            ..Connection::default()
        };
        OpenAi::new(OpenAiOptions { connection, return_reasoning, ..OpenAiOptions::default() }).unwrap()
    }

    #[test]
    fn providers_differ_in_what_they_want() {
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
