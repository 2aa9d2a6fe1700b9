//! The address of this server as a client knows it.

use axum::{
    extract::OriginalUri,
    http::{HeaderMap, Uri, header, request::Parts, uri::Authority},
};

/// The address at which a client has reached this server. Its text is made when it is needed, which is seldom.
#[derive(Clone)]
pub(crate) struct OwnAddress {
    /// A copy: a header keeps the buffer that the request was read into, and this is kept as long as a stream is open.
    host: Option<Box<str>>,
    is_https: bool,
    /// The path below which proxies and the application have this server.
    pub(crate) prefix: String,
}

impl OwnAddress {
    pub(crate) fn from_head(head: &Parts) -> Self {
        let headers = &head.headers;
        let mount = head
            .extensions
            .get()
            .map_or("", |OriginalUri(original)| mount_prefix(original, &head.uri));
        Self {
            host: headers.get(header::HOST).and_then(|host| host.to_str().ok()).map(Box::from),
            is_https: headers.get("x-forwarded-proto").is_some_and(|scheme| scheme == "https"),
            prefix: forwarded_prefix(headers).to_owned() + mount,
        }
    }

    pub(crate) fn scheme(&self) -> &'static str {
        if self.is_https { "https" } else { "http" }
    }

    /// Returns the URL, without a slash at its end; only its path if the client has named no host.
    pub(crate) fn url(&self) -> String {
        self.without_scheme()
            .map_or_else(|| self.prefix.clone(), |url| format!("{}:{url}", self.scheme()))
    }

    /// Returns the URL of a WebSocket. Without a scheme, a client takes the one of its page.
    pub(crate) fn socket_url(&self, path: &str) -> Option<String> {
        let scheme = if self.is_https { "wss:" } else { "" };
        Some(format!("{scheme}{}{path}", self.without_scheme()?))
    }

    fn without_scheme(&self) -> Option<String> {
        let host = self.host.as_ref().filter(|host| host.parse::<Authority>().is_ok())?;
        Some(format!("//{host}{}", self.prefix))
    }
}

pub(crate) fn mount_prefix<'a>(original: &'a Uri, uri: &Uri) -> &'a str {
    original.path().strip_suffix(uri.path()).unwrap_or(original.path()).trim_end_matches('/')
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
    use axum::http::{HeaderName, HeaderValue};

    use super::*;

    #[test]
    fn the_mount_prefix_is_the_part_before_the_servers_own_path() {
        let prefix = |original: &'static str, uri: &'static str| {
            mount_prefix(&Uri::from_static(original), &Uri::from_static(uri)).to_owned()
        };
        assert_eq!(prefix("/", "/"), "");
        assert_eq!(prefix("/ai", "/"), "/ai");
        assert_eq!(prefix("/ai/", "/"), "/ai");
        assert_eq!(prefix("/ai/nowhere", "/nowhere"), "/ai");
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
