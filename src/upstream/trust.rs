//! The rule for URLs that keys come from, or secrets go to.

use std::net::IpAddr;

use reqwest::Url;

/// Returns whether others can neither read nor change what is exchanged with a URL: it is `https`, or `http` on this machine. A
/// URL with credentials is refused, because logs and errors would show them.
pub(crate) fn is_trusted_url(url: &str) -> bool {
    let Ok(url) = Url::parse(url) else { return false };
    let host = url.host_str().unwrap_or_default();
    let is_loopback =
        host == "localhost" || host.trim_matches(['[', ']']).parse().is_ok_and(|address: IpAddr| address.is_loopback());
    let is_bare = url.username().is_empty() && url.password().is_none();
    is_bare && (url.scheme() == "https" || url.scheme() == "http" && is_loopback)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_https_and_loopback_urls_are_trusted() {
        for url in ["https://id.test/keys", "http://localhost:80/k", "http://127.0.0.1/k", "http://[::1]:1/k"] {
            assert!(is_trusted_url(url), "{url}");
        }
        for url in ["", "keys", "http://id.test/keys", "http://localhost.id.test/", "file:///k", "https://u:p@id.test/"]
        {
            assert!(!is_trusted_url(url), "{url}");
        }
    }
}
