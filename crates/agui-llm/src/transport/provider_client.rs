//! Options of the client of a provider.

use std::{fmt, path::PathBuf, time::Duration};

use http::{HeaderMap, HeaderName, HeaderValue};
use reqwest::Url;
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use smart_default::SmartDefault;

use agui_base::upstream::{CONNECT_TIMEOUT, ClientError, secret_names::secret_variable};

/// A header in which the key is sent, and the text before it.
pub(crate) type KeyPlace = (HeaderName, &'static str);

/// The cloud whose credentials authenticate requests, found where the cloud's own tools find them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum CloudCredentials {
    /// The keys of AWS: environment variables, web identity, a profile, a container, an instance.
    Aws,
    /// Google's application default credentials: a file, or the server for metadata.
    Gcp,
}

/// Options of the client of a provider. The duration of a whole answer is unlimited.
#[derive(Clone, SmartDefault)]
pub struct ProviderClient {
    /// The base URL of the API; `None` is the provider's own. A query, such as Azure's `?api-version=`, is kept.
    pub base_url: Option<String>,
    /// The API key; `None` or an empty one for servers without authentication.
    pub api_key: Option<SecretString>,
    /// The file with the key, in place of `api_key`. It is read for each request, because keys of clouds change.
    pub api_key_file: Option<PathBuf>,
    /// The command that prints the key, in place of `api_key`: a program and its arguments, without a shell. Empty for none.
    pub api_key_command: Vec<String>,
    /// The time for which the output of the command is used. A refused key (401) is renewed
    /// earlier.
    #[default(Duration::from_secs(300))]
    pub api_key_ttl: Duration,
    /// Additional headers of each request. They replace headers of the same name. Their values are secrets: no error and
    /// no log contains them, nor parts of them.
    pub headers: Vec<(String, SecretString)>,
    /// Additional headers of each request that are not secret.
    pub plain_headers: Vec<(String, String)>,
    /// The time limit on connecting, TLS handshake included.
    #[default(CONNECT_TIMEOUT)]
    pub connect_timeout: Duration,
    /// The longest silence of the provider, before the response's head and between two pieces of its body.
    #[default(Duration::from_secs(60))]
    pub idle_timeout: Duration,
    /// The number of times that a failed request is sent again.
    #[default(2)]
    pub max_retries: u32,
    /// The largest event of a response, in bytes. A larger one is an error and is not buffered. `None` is 32 MiB: an event may
    /// contain a picture, results of the provider's tools or the whole answer. Four events of more than 8 MiB are read at once.
    pub max_event_bytes: Option<usize>,
}

/// The base URL may contain a password or a key, so only its host is shown.
impl fmt::Debug for ProviderClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let host = self
            .base_url
            .as_ref()
            .map(|url| Url::parse(url).ok().and_then(|url| url.host_str().map(str::to_owned)));
        f.debug_struct("ProviderClient")
            .field("host", &host)
            .field("api_key", &self.api_key)
            .field("api_key_file", &self.api_key_file)
            .field("api_key_command", &self.api_key_command.first())
            .field("api_key_ttl", &self.api_key_ttl)
            .field("headers", &self.headers)
            .field("plain_headers", &self.plain_headers)
            .field("connect_timeout", &self.connect_timeout)
            .field("idle_timeout", &self.idle_timeout)
            .field("max_retries", &self.max_retries)
            .field("max_event_bytes", &self.max_event_bytes)
            .finish()
    }
}

/// An error in the options of a provider. It contains no secrets.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SetupError {
    /// The base URL is invalid.
    #[error("the base URL of the model provider is not an http or https URL")]
    Url,
    /// An environment variable with a key is not set.
    #[error(
        "the environment variable {variable} is not set: put the key of the model provider into it"
    )]
    MissingKey {
        /// The variable's name.
        variable: &'static str,
    },
    /// The key cannot be sent as a header.
    #[error("the API key contains characters that a header cannot carry: remove line ends from it")]
    ApiKey,
    /// A header is invalid.
    #[error("the header {name:?} has an invalid name or value")]
    Header {
        /// The header's name.
        name: String,
    },
    /// An option is invalid, or is one that the provider's API lacks.
    #[error("`{option}`: {problem}")]
    Option {
        /// The option's name.
        option: &'static str,
        /// The problem.
        problem: String,
    },
    /// A file of models is invalid.
    #[error("the models: {problem}")]
    KnownModels {
        /// The problem, with its place.
        problem: String,
    },
    /// TLS cannot be set up.
    #[error("TLS cannot be set up")]
    Tls(#[source] ClientError),
}

impl ProviderClient {
    /// Returns a client for the provider's own URL, with the key in an environment variable.
    pub(crate) fn from_env(variable: &'static str) -> Result<Self, SetupError> {
        let key = secret_variable(variable).map_err(|_| SetupError::MissingKey { variable })?;
        Ok(Self { api_key: Some(key.into()), ..Self::default() })
    }

    pub(crate) fn url(&self, default: &str) -> Result<Url, SetupError> {
        let url =
            Url::parse(self.base_url.as_deref().unwrap_or(default)).map_err(|_| SetupError::Url)?;
        let is_http = matches!(url.scheme(), "http" | "https") && url.has_host();
        if is_http { Ok(url) } else { Err(SetupError::Url) }
    }

    /// Returns the headers of all requests: the key, unless it changes, and the configured headers.
    pub(super) fn headers(&self, places: &[KeyPlace]) -> Result<HeaderMap, SetupError> {
        let mut map = HeaderMap::new();
        if let Some(key) = self.api_key.as_ref().filter(|key| !key.expose_secret().is_empty()) {
            for (name, prefix) in places {
                map.insert(name, key_header(prefix, key)?);
            }
        }
        map.extend(self.configured_headers()?);
        Ok(map)
    }

    pub(super) fn configured_headers(&self) -> Result<HeaderMap, SetupError> {
        let mut map = HeaderMap::new();
        let secret = self.headers.iter().map(|(name, value)| (name, value.expose_secret(), true));
        let plain = self.plain_headers.iter().map(|(name, value)| (name, value.as_str(), false));
        for (name, value, is_secret) in secret.chain(plain) {
            let invalid = || SetupError::Header { name: name.clone() };
            let header = HeaderName::try_from(name).map_err(|_| invalid())?;
            let mut value = HeaderValue::try_from(value).map_err(|_| invalid())?;
            value.set_sensitive(is_secret);
            map.append(header, value);
        }
        Ok(map)
    }

    /// Returns the texts that no error message and no log may contain.
    pub(super) fn secrets(&self, url: &Url) -> Vec<String> {
        let key = self.api_key.iter().map(|key| key.expose_secret().to_owned());
        let headers = self.headers.iter().map(|(_, value)| value.expose_secret().to_owned());
        let password = url.password().map(str::to_owned);
        let query = url
            .query_pairs()
            .filter(|(name, _)| !name.contains("version"))
            .map(|(_, value)| value.into_owned());
        key.chain(headers).chain(password).chain(query).collect()
    }
}

pub(super) fn key_header(prefix: &str, key: &SecretString) -> Result<HeaderValue, SetupError> {
    let text = format!("{prefix}{}", key.expose_secret());
    let mut value = HeaderValue::try_from(text).map_err(|_| SetupError::ApiKey)?;
    value.set_sensitive(true);
    Ok(value)
}

/// Returns whether the host of a URL is a domain or below it.
pub(crate) fn is_in_domain(url: &Url, domain: &str) -> bool {
    let rest = url.host_str().and_then(|host| host.strip_suffix(domain));
    rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_key_is_named() {
        let error = ProviderClient::from_env("AGUI_TEST_NO_SUCH_KEY").unwrap_err().to_string();
        assert!(
            error.starts_with("the environment variable AGUI_TEST_NO_SUCH_KEY is not set"),
            "{error}"
        );
    }
}
