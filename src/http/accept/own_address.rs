//! The address of this server as a client knows it.

use axum::{
    extract::OriginalUri,
    http::{HeaderMap, Uri, header, request::Parts, uri::Authority},
};

use super::serve::is_from_own_network;

/// The address at which a client has reached this server. The first source that exists decides:
/// 1. `[server] public_url`.
/// 2. `Host`, and what a proxy reports in `Forwarded` or `X-Forwarded-Proto`, and `X-Forwarded-Prefix`. A proxy is a peer of
///    this machine or of a private network.
/// 3. `Host`, and plain HTTP.
///
/// Its text is made when it is needed, which is seldom.
#[derive(Clone)]
pub(crate) struct OwnAddress {
    /// A copy: a header keeps the buffer that the request was read into, and this is kept as long as a stream is open.
    host: Option<Box<str>>,
    is_https: bool,
    /// The path below which proxies and the application have this server.
    pub(crate) prefix: String,
}

impl OwnAddress {
    pub(crate) fn from_head(head: &Parts, public_url: Option<&str>) -> Self {
        if let Some((scheme, rest)) = public_url.and_then(|url| url.split_once("://")) {
            let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
            return Self {
                host: Some(host.into()),
                is_https: scheme.eq_ignore_ascii_case("https"),
                prefix: path.trim_end_matches('/').to_owned(),
            };
        }
        let mount = head
            .extensions
            .get()
            .map_or("", |OriginalUri(original)| mount_prefix(original, &head.uri));
        let host = head.headers.get(header::HOST).and_then(|host| host.to_str().ok());
        let proxied = is_from_own_network(&head.extensions).then_some(&head.headers);
        let scheme = proxied.and_then(forwarded_scheme);
        Self {
            host: host.filter(|host| is_plain_host(host)).map(Box::from),
            is_https: scheme.is_some_and(|scheme| scheme.eq_ignore_ascii_case("https")),
            prefix: proxied.map_or("", forwarded_prefix).to_owned() + mount,
        }
    }

    /// Returns the URL, without a slash at its end; only its path if the client has named no host.
    pub(crate) fn url(&self) -> String {
        match &self.host {
            Some(host) => self.url_at(host),
            None => self.prefix.clone(),
        }
    }

    /// Returns the URL, with another host if the client has named none.
    pub(crate) fn url_at(&self, host: &str) -> String {
        let scheme = if self.is_https { "https" } else { "http" };
        format!("{scheme}://{}{}", self.host.as_deref().unwrap_or(host), self.prefix)
    }

    /// Returns the URL of a WebSocket. Without a scheme, a client takes the one of its page.
    pub(crate) fn socket_url(&self, path: &str) -> Option<String> {
        let scheme = if self.is_https { "wss:" } else { "" };
        Some(format!("{scheme}//{}{}{path}", self.host.as_ref()?, self.prefix))
    }
}

/// Returns whether a `Host` can be pasted into a URL and a shell.
fn is_plain_host(host: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.:[]".contains(c);
    host.chars().all(is_plain) && host.parse::<Authority>().is_ok()
}

/// Returns the part of a path before the server's own path, which has lost a slash at its end.
pub(crate) fn mount_prefix<'a>(original: &'a Uri, uri: &Uri) -> &'a str {
    let original = original.path().trim_end_matches('/');
    original.strip_suffix(uri.path().trim_end_matches('/')).unwrap_or(original)
}

/// Returns the scheme in which the client has reached the first of several proxies.
fn forwarded_scheme(headers: &HeaderMap) -> Option<&str> {
    let first = |name: &str| headers.get(name)?.to_str().ok()?.split(',').next();
    let forwarded = first("forwarded").and_then(|element| {
        let mut pairs = element.split(';').filter_map(|pair| pair.split_once('='));
        pairs.find(|(name, _)| name.trim().eq_ignore_ascii_case("proto"))
    });
    let scheme = forwarded.map(|(_, value)| value.trim().trim_matches('"'));
    scheme.or_else(|| first("x-forwarded-proto").map(str::trim))
}

/// Returns the path below which a proxy serves this server and which it removes, from `X-Forwarded-Prefix`. It is safe to
/// paste into a shell.
pub(crate) fn forwarded_prefix(headers: &HeaderMap) -> &str {
    let prefix = headers
        .get("x-forwarded-prefix")
        .and_then(|prefix| prefix.to_str().ok())
        .unwrap_or_default();
    let prefix = prefix.trim_end_matches('/');
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.~/".contains(c);
    let is_path = prefix.starts_with('/') && !prefix.contains("//");
    if is_path && prefix.chars().all(is_plain) { prefix } else { "" }
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderName, HeaderValue, Request};

    use super::*;

    fn address(headers: &[(&str, &str)], public_url: Option<&str>) -> OwnAddress {
        let request = headers
            .iter()
            .fold(Request::get("/"), |request, (name, value)| request.header(*name, *value));
        OwnAddress::from_head(&request.body(()).unwrap().into_parts().0, public_url)
    }

    #[test]
    fn the_scheme_is_that_of_the_first_proxy_unless_the_operator_names_the_url() {
        let host = ("host", "a.test:1");
        for (headers, expected) in [
            (&[host][..], ["http://a.test:1", "//a.test:1/s"]),
            (&[host, ("x-forwarded-proto", "https")], ["https://a.test:1", "wss://a.test:1/s"]),
            (
                &[host, ("x-forwarded-proto", "HTTPS , http")],
                ["https://a.test:1", "wss://a.test:1/s"],
            ),
            (&[host, ("x-forwarded-proto", "http, https")], ["http://a.test:1", "//a.test:1/s"]),
            (
                &[host, ("forwarded", "for=\"[::1]:2\"; Proto=\"https\";by=x, proto=http")],
                ["https://a.test:1", "wss://a.test:1/s"],
            ),
            (
                &[host, ("forwarded", "proto=http"), ("x-forwarded-proto", "https")],
                ["http://a.test:1", "//a.test:1/s"],
            ),
            (
                &[host, ("forwarded", "for=1.2.3.4"), ("x-forwarded-proto", "https")],
                ["https://a.test:1", "wss://a.test:1/s"],
            ),
        ] {
            let address = address(headers, None);
            let made = [address.url(), address.socket_url("/s").unwrap()];
            assert_eq!(made, expected, "{headers:?}");
        }
        let proxied = [host, ("x-forwarded-proto", "http"), ("x-forwarded-prefix", "/b")];
        let public = address(&proxied, Some("https://chat.example/api/"));
        assert_eq!(public.url(), "https://chat.example/api");
        assert_eq!(public.socket_url("/s").unwrap(), "wss://chat.example/api/s");
    }

    #[test]
    fn a_host_that_a_shell_would_interpret_is_not_repeated() {
        let url_of = |host: &str| address(&[("host", host)], None).url_at("localhost");
        assert_eq!(url_of("agents.example.com:8080"), "http://agents.example.com:8080");
        assert_eq!(url_of("[::1]:80"), "http://[::1]:80");
        for host in ["", "a;rm", "$(id)", "a b", "<b>"] {
            assert_eq!(url_of(host), "http://localhost", "{host}");
        }
    }

    #[test]
    fn the_mount_prefix_is_the_part_before_the_servers_own_path() {
        let prefix = |original: &'static str, uri: &'static str| {
            mount_prefix(&Uri::from_static(original), &Uri::from_static(uri)).to_owned()
        };
        assert_eq!(prefix("/", "/"), "");
        assert_eq!(prefix("/ai", "/"), "/ai");
        assert_eq!(prefix("/ai/", "/"), "/ai");
        assert_eq!(prefix("/ai/nowhere", "/nowhere"), "/ai");
        assert_eq!(prefix("/ai/send-message/", "/send-message"), "/ai");
    }

    #[test]
    fn a_forwarded_prefix_that_is_no_plain_path_is_not_repeated() {
        let prefix_of = |value: &'static str| {
            forwarded_prefix(&HeaderMap::from_iter([(
                HeaderName::from_static("x-forwarded-prefix"),
                HeaderValue::from_static(value),
            )]))
            .to_owned()
        };
        assert_eq!(prefix_of("/ai"), "/ai");
        assert_eq!(prefix_of("/team-a/ai/"), "/team-a/ai");
        for value in ["", "/", "ai", "//evil.example", "/a//b", "/$(id)", "/a b", "/<b>", "/a;rm"] {
            assert_eq!(prefix_of(value), "", "{value}");
        }
    }
}
