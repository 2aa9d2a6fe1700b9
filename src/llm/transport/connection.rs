//! What an operator says about the way to a provider.

use std::{fmt, time::Duration};

use http::{HeaderMap, HeaderName, HeaderValue};
use reqwest::Url;
use secrecy::{ExposeSecret, SecretString};

use crate::upstream::CONNECT_TIMEOUT;

/// How a provider is reached, and how long one waits for it.
///
/// There is no limit on the whole of an answer: it may stream for as long as it has something to say.
#[derive(Clone)]
pub struct Connection {
    /// Where the provider's API begins; `None` is the provider's own. A query, such as Azure's `?api-version=`, is
    /// kept.
    pub base_url: Option<String>,
    /// The key; `None`, or an empty one, for servers that want none.
    pub api_key: Option<SecretString>,
    /// More headers for each request. One that has the name of the provider's own replaces it.
    pub headers: Vec<(String, SecretString)>,
    /// How long connecting may take, the handshake of TLS included.
    pub connect_timeout: Duration,
    /// How long the provider may be silent: before the head of its answer, and then between any two pieces of it.
    pub idle_timeout: Duration,
    /// How many times a request is sent again that was not answered.
    pub max_retries: u32,
    /// How large one event may be. What is larger is an error, and never held in memory.
    pub max_event_bytes: usize,
}

impl Default for Connection {
    fn default() -> Self {
        Self {
            base_url: None,
            api_key: None,
            headers: Vec::new(),
            connect_timeout: CONNECT_TIMEOUT,
            idle_timeout: Duration::from_secs(60),
            max_retries: 2,
            max_event_bytes: 1 << 20,
        }
    }
}

/// A base URL may have a password or a key in it, so that it is left out but for the host.
impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let host =
            self.base_url.as_ref().map(|url| Url::parse(url).ok().and_then(|url| url.host_str().map(str::to_owned)));
        f.debug_struct("Connection")
            .field("host", &host)
            .field("api_key", &self.api_key)
            .field("headers", &self.headers)
            .field("connect_timeout", &self.connect_timeout)
            .field("idle_timeout", &self.idle_timeout)
            .field("max_retries", &self.max_retries)
            .field("max_event_bytes", &self.max_event_bytes)
            .finish()
    }
}

/// Why a provider cannot be set up. Nothing secret is in it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SetupError {
    /// The base URL is none.
    #[error("the base URL of the model provider is not an http or https URL")]
    Url,
    /// The key cannot be sent.
    #[error("the API key has characters in it that a header cannot carry; is there a line end in it?")]
    ApiKey,
    /// A header cannot be sent.
    #[error("the header {name:?} is none that can be sent")]
    Header {
        /// Its name.
        name: String,
    },
    /// TLS cannot be set up.
    #[error("TLS cannot be set up")]
    Tls(#[source] reqwest::Error),
}

impl Connection {
    /// The base URL, or `default`.
    pub(in crate::llm) fn url(&self, default: &str) -> Result<Url, SetupError> {
        let url = Url::parse(self.base_url.as_deref().unwrap_or(default)).map_err(|_| SetupError::Url)?;
        let fine = matches!(url.scheme(), "http" | "https") && url.has_host();
        if fine { Ok(url) } else { Err(SetupError::Url) }
    }

    /// The key as the value of a header, after `prefix`.
    pub(in crate::llm) fn key_header(&self, prefix: &str) -> Result<Option<HeaderValue>, SetupError> {
        let Some(key) = self.api_key.as_ref().filter(|key| !key.expose_secret().is_empty()) else { return Ok(None) };
        let text = format!("{prefix}{}", key.expose_secret());
        let mut value = HeaderValue::try_from(text).map_err(|_| SetupError::ApiKey)?;
        value.set_sensitive(true);
        Ok(Some(value))
    }

    pub(super) fn header_map(&self) -> Result<HeaderMap, SetupError> {
        let mut map = HeaderMap::new();
        for (name, value) in &self.headers {
            let refused = || SetupError::Header { name: name.clone() };
            let header = HeaderName::try_from(name).map_err(|_| refused())?;
            let mut value = HeaderValue::try_from(value.expose_secret()).map_err(|_| refused())?;
            value.set_sensitive(true);
            map.append(header, value);
        }
        Ok(map)
    }

    /// What no message and no log may have in it.
    pub(super) fn secrets(&self, url: &Url) -> Vec<String> {
        let key = self.api_key.iter().map(|key| key.expose_secret().to_owned());
        let headers = self.headers.iter().map(|(_, value)| value.expose_secret().to_owned());
        let password = url.password().map(str::to_owned);
        let query =
            url.query_pairs().filter(|(name, _)| !name.contains("version")).map(|(_, value)| value.into_owned());
        key.chain(headers).chain(password).chain(query).collect()
    }
}
