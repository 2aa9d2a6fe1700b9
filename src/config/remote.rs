//! What an agent that is another AG-UI endpoint needs, and which headers may travel to it.

use std::collections::HashSet;

use http::HeaderName;

use super::{Agent, ConfigError, Origin, agents::is_http_address};

/// Headers that are about one connection or one body, and so never about the next: nobody passes them on, or sets them.
const NOT_TO_PASS: [&str; 17] = [
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

pub(super) fn check(name: &str, agent: &Agent, origin: &Origin) -> Result<(), ConfigError> {
    let fault = |option: &str, message: &str| Err(origin.error(&["agents", name, option], message));
    match &agent.url {
        None => return Err(origin.error(&["agents", name], "kind = \"remote\" needs `url`, an AG-UI endpoint")),
        Some(url) if !is_http_address(url) => {
            return fault("url", "this is no address such as \"https://agents.example.com/run\"; keys go elsewhere");
        }
        Some(_) => {}
    }
    let mut seen = HashSet::new();
    let own = agent.headers_env.iter().flatten().map(|(header, _)| ("headers_env", header));
    let passed = agent.pass_headers.iter().flatten().map(|header| ("pass_headers", header));
    for (option, header) in own.chain(passed) {
        let Ok(parsed) = HeaderName::try_from(header.as_str()) else {
            return fault(option, &format!("{header:?} is no name of a header"));
        };
        if NOT_TO_PASS.contains(&parsed.as_str()) {
            return fault(option, &format!("`{header}` is about the connection or the body, not for the agent"));
        }
        if !seen.insert(parsed) {
            return fault(option, &format!("`{header}` is there twice"));
        }
    }
    for (option, seconds) in
        [("connect_timeout_secs", agent.connect_timeout_secs), ("idle_timeout_secs", agent.idle_timeout_secs)]
    {
        if seconds == Some(0) {
            return fault(option, "at least 1 is needed");
        }
    }
    Ok(())
}
