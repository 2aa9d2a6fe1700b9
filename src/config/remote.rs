//! Checks of agents of `kind = "remote"`: the URL, and the headers that may be sent to it.

use std::collections::HashSet;

use http::HeaderName;

use super::{
    agents::{AgentConfig, is_http_url},
    diagnose::ConfigError,
    origin::Origin,
};

/// Headers of one connection or one body.
const HOP_BY_HOP_HEADERS: [&str; 17] = [
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

pub(super) fn check(name: &str, agent: &AgentConfig, origin: &Origin) -> Result<(), ConfigError> {
    let error = |option: &str, message: &str| Err(origin.error(&["agents", name, option], message));
    match &agent.url {
        None => return Err(origin.error(&["agents", name], "kind = \"remote\" needs `url`, an AG-UI endpoint")),
        Some(url) if !is_http_url(url) => {
            return error(
                "url",
                "expected a URL such as \"https://agents.example.com/run\"; keys go into `headers_env`",
            );
        }
        Some(_) => {}
    }
    let mut seen = HashSet::new();
    let own = agent.headers_env.iter().flatten().map(|(header, _)| ("headers_env", header));
    let passed = agent.pass_headers.iter().flatten().map(|header| ("pass_headers", header));
    for (option, header) in own.chain(passed) {
        let Ok(parsed) = HeaderName::try_from(header.as_str()) else {
            return error(option, &format!("{header:?} is not a valid header name"));
        };
        if HOP_BY_HOP_HEADERS.contains(&parsed.as_str()) {
            return error(option, &format!("`{header}` belongs to the connection or the body and cannot be sent on"));
        }
        if !seen.insert(parsed) {
            return error(option, &format!("`{header}` is listed twice"));
        }
    }
    for (option, seconds) in
        [("connect_timeout_secs", agent.connect_timeout_secs), ("idle_timeout_secs", agent.idle_timeout_secs)]
    {
        if seconds == Some(0) {
            return error(option, "at least 1 is needed");
        }
    }
    Ok(())
}
