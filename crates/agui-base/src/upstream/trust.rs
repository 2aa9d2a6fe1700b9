//! The rules for URLs in a configuration: URLs of other servers, of sources of keys, and of
//! receivers of secrets.

use std::net::IpAddr;

use reqwest::Url;

/// Reads the URL of a server. A URL with credentials is refused, because logs and errors would show them.
pub fn server_url(url: &str) -> Option<Url> {
    let url = Url::parse(url).ok()?;
    let is_bare = url.username().is_empty() && url.password().is_none();
    (matches!(url.scheme(), "http" | "https") && url.has_host() && is_bare).then_some(url)
}

/// Returns whether nobody else can read or change the traffic with a URL: it is `https`, or `http`
/// on this machine. Its name is `localhost`, as written: a resolver may ask DNS for `localhost.`
/// and for names under localhost.
pub fn is_trusted_url(url: &str) -> bool {
    let Some(url) = server_url(url) else { return false };
    let host = url.host_str().unwrap_or_default();
    let is_loopback = host == "localhost"
        || host.trim_matches(['[', ']']).parse().is_ok_and(|address: IpAddr| address.is_loopback());
    url.scheme() == "https" || is_loopback
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_https_and_loopback_urls_are_trusted() {
        for url in [
            "https://id.test/keys",
            "http://localhost:80/k",
            "http://127.0.0.1/k",
            "http://[::1]:1/k",
        ] {
            assert!(is_trusted_url(url), "{url}");
        }
        for url in [
            "",
            "keys",
            "http://id.test/keys",
            "http://localhost.id.test/",
            "file:///k",
            "https://u:p@id.test/",
        ]
        .into_iter()
        .chain(["http://localhost./k", "http://a.localhost/k"])
        {
            assert!(!is_trusted_url(url), "{url}");
        }
    }
}
