//! Options of a remote agent.

use std::{collections::HashSet, time::Duration};

use indexmap::IndexMap;
use reqwest::{Url, header::HeaderName};
use secrecy::SecretString;
use serde::Deserialize;

use agui_agent::ThreadIds;
use agui_base::{
    InvalidOption, units, upstream,
    upstream::{secret_names::secret_variable, trust::server_url},
};

/// Headers that describe one connection or one body. They are neither set nor passed on.
const CONNECTION_HEADERS: [&str; 17] = [
    "accept",
    "accept-encoding",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "expect",
    "host",
    "http2-settings",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// The end of the path of an agui-server's endpoint.
pub(super) const SEND_MESSAGE: &str = "/send-message";

/// Options of a remote agent: the keys of an agent of `kind = "remote"` in the configuration.
#[derive(Debug, Clone, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct RemoteOptions {
    /// With `kind = "remote"`: the URL of the AG-UI endpoint, without credentials.
    pub url: String,
    /// A description for the agent's capabilities.
    #[serde(default)]
    pub description: Option<String>,
    /// Headers of every request.
    #[serde(skip)]
    pub headers: Vec<(String, SecretString)>,
    /// Headers of every request, with the environment variables of their values.
    #[serde(default)]
    pub headers_env: IndexMap<String, String>,
    /// With `kind = "remote"`: the headers of the client's request that are sent on to the endpoint.
    // The server must let them through (`HttpOptions::pass_headers`).
    #[serde(default)]
    pub pass_headers: Vec<String>,
    /// The time limit of connecting.
    #[serde(
        default = "default_connect_timeout",
        rename = "connect_timeout_secs",
        with = "units::Seconds"
    )]
    pub connect_timeout: Duration,
    /// The time limit of silence. A comment in the stream ends the silence.
    #[serde(
        default = "default_idle_timeout",
        rename = "idle_timeout_secs",
        with = "units::Seconds"
    )]
    pub idle_timeout: Duration,
    /// With `kind = "remote"`: true if the endpoint is an agui-server. A detached run is then detached there,
    /// too, and continues if this server, the endpoint or the connection is lost.
    #[serde(default)]
    pub resumable: bool,
    /// With `kind = "remote"`: the ids of threads that the endpoint gets. Default: `branch`.
    #[serde(default)]
    pub thread_ids: ThreadIds,
    /// With `kind = "remote"`: true passes `RAW` events and `rawEvent` members of the endpoint on to clients. They can be
    /// many times the size of all other events.
    #[serde(default)]
    pub raw_events: bool,
    /// The size limit of one event, in bytes.
    #[serde(skip, default = "default_max_event_bytes")]
    pub max_event_bytes: usize,
}

fn default_connect_timeout() -> Duration {
    upstream::CONNECT_TIMEOUT
}

fn default_idle_timeout() -> Duration {
    Duration::from_secs(60)
}

fn default_max_event_bytes() -> usize {
    4 * 1024 * 1024
}

impl RemoteOptions {
    /// An endpoint, with the defaults for all other options.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            description: None,
            headers: Vec::new(),
            headers_env: IndexMap::new(),
            pass_headers: Vec::new(),
            connect_timeout: default_connect_timeout(),
            idle_timeout: default_idle_timeout(),
            resumable: false,
            thread_ids: ThreadIds::default(),
            raw_events: false,
            max_event_bytes: default_max_event_bytes(),
        }
    }

    /// Checks the options without reading the environment.
    ///
    /// # Errors
    /// [`InvalidOption`], for the first wrong option.
    pub fn check(&self) -> Result<(), InvalidOption> {
        let url = self.parsed_url()?;
        if self.resumable && !url.path().ends_with(SEND_MESSAGE) {
            let problem =
                format!("the endpoint is an agui-server, so `url` ends with {SEND_MESSAGE}");
            return Err(InvalidOption::new("resumable", problem));
        }
        let own = self.headers.iter().map(|(name, _)| ("headers", name));
        let own = own.chain(self.headers_env.keys().map(|name| ("headers_env", name)));
        let passed = self.pass_headers.iter().map(|name| ("pass_headers", name));
        let mut seen = HashSet::new();
        for (option, name) in own.chain(passed) {
            let header = header_name(option, name)?;
            if CONNECTION_HEADERS.contains(&header.as_str()) {
                let problem = format!(
                    "`{name}` describes the connection or the body and cannot be set or passed on"
                );
                return Err(InvalidOption::new(option, problem));
            }
            if !seen.insert(header) {
                return Err(InvalidOption::new(option, format!("`{name}` is named twice")));
            }
        }
        for (option, timeout) in [
            ("connect_timeout_secs", self.connect_timeout),
            ("idle_timeout_secs", self.idle_timeout),
        ] {
            if timeout.is_zero() {
                return Err(InvalidOption::new(option, "at least 1 is needed"));
            }
        }
        Ok(())
    }

    pub(super) fn parsed_url(&self) -> Result<Url, InvalidOption> {
        let problem = "expected a URL such as \"https://agents.example.com/run\", without credentials; keys go into `headers_env`";
        server_url(&self.url).ok_or_else(|| InvalidOption::new("url", problem))
    }

    pub(super) fn resolved_headers(&self) -> Result<Vec<(String, SecretString)>, InvalidOption> {
        let mut headers = self.headers.clone();
        for (name, variable) in &self.headers_env {
            let value = secret_variable(variable)
                .map_err(|problem| InvalidOption::new("headers_env", problem))?;
            headers.push((name.clone(), value.into()));
        }
        Ok(headers)
    }
}

pub(super) fn header_name(option: &str, name: &str) -> Result<HeaderName, InvalidOption> {
    HeaderName::try_from(name)
        .map_err(|_| InvalidOption::new(option, format!("{name:?} is not a valid header name")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_of_the_configuration_is_read_with_its_units() {
        let text = "url = \"https://h/run\"\nheaders_env = { Authorization = \"TOKEN\" }\npass_headers = [\"x-tenant\"]\n\
                    idle_timeout_secs = 5";
        let options: RemoteOptions = toml::from_str(text).unwrap();
        assert_eq!(
            (options.idle_timeout, options.connect_timeout),
            (Duration::from_secs(5), upstream::CONNECT_TIMEOUT)
        );
        assert_eq!(
            (&*options.headers_env["Authorization"], options.max_event_bytes),
            ("TOKEN", 4 << 20)
        );
        options.check().unwrap();
    }

    #[test]
    fn wrong_options_are_named() {
        for (text, expected) in [
            ("url = \"nowhere\"", "url: expected a URL"),
            ("url = \"ftp://h/\"", "url: expected a URL"),
            ("url = \"http://u:p@h/\"", "url: expected a URL"),
            (
                "url = \"http://h\"\nheaders_env = { \"a b\" = \"X\" }",
                "headers_env: \"a b\" is not a valid header name",
            ),
            (
                "url = \"http://h\"\npass_headers = [\"Host\"]",
                "pass_headers: `Host` describes the connection",
            ),
            (
                "url = \"http://h\"\npass_headers = [\"a\", \"A\"]",
                "pass_headers: `A` is named twice",
            ),
            ("url = \"http://h\"\nidle_timeout_secs = 0", "idle_timeout_secs: at least 1"),
            ("url = \"http://h\"\nconnect_timeout_secs = 0", "connect_timeout_secs: at least 1"),
        ] {
            let error =
                toml::from_str::<RemoteOptions>(text).unwrap().check().unwrap_err().to_string();
            assert!(error.starts_with(expected), "{text}\n{error}");
        }
        let error = toml::from_str::<RemoteOptions>(
            "url = \"http://h\"\nheaders_env = { A = \"AGUI_NOT_SET\" }",
        )
        .unwrap();
        let error = error.resolved_headers().unwrap_err().to_string();
        assert_eq!(error, "headers_env: the environment variable AGUI_NOT_SET is not set");
    }
}
