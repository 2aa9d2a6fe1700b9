//! Recognises requests that a web page of a foreign origin makes, so that a page that a person happens to visit cannot
//! start, stop or delete anything.
//!
//! Browsers add `Origin` to every POST and DELETE, and to every request whose response a script of another origin wants to
//! read. They add `Sec-Fetch-Site` to requests to HTTPS and to this machine. Pages cannot change either header. Programs
//! send neither.

use axum::{
    extract::Request,
    http::{HeaderMap, HeaderName, Method, header},
};

use super::cors::Cors;

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const SEC_FETCH_MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");
const SEC_FETCH_DEST: HeaderName = HeaderName::from_static("sec-fetch-dest");

/// Returns whether a page of a foreign origin makes the request. The first rule that applies decides:
/// 1. A request to the page's own origin, or of the person (a typed address), is not foreign. The browser knows this even
///    if a proxy has changed `Host`.
/// 2. A request with an `Origin` is foreign unless `[cors]` allows the origin, or its host and port are those of `Host`.
/// 3. A request of another site without `Origin` is foreign, unless it follows a link, as from a search result to `GET /`.
///    A frame is not a followed link: the person does not see it.
/// 4. All other requests are not foreign.
pub(crate) fn is_foreign(request: &Request, cors: &Cors) -> bool {
    let text = |name: &HeaderName| {
        request.headers().get(name).map(|value| value.to_str().unwrap_or_default())
    };
    let site = text(&SEC_FETCH_SITE);
    if matches!(site, Some("same-origin" | "none")) {
        return false;
    }
    if let Some(origin) = text(&header::ORIGIN) {
        return !cors.allows(origin) && !is_own_origin(origin, text(&header::HOST));
    }
    let follows_link = *request.method() == Method::GET
        && text(&SEC_FETCH_MODE) == Some("navigate")
        && text(&SEC_FETCH_DEST) == Some("document");
    site == Some("cross-site") && !follows_link
}

/// Returns whether a page of this server makes the request, as far as the browser reports it.
/// Programs send no such header.
pub(crate) fn is_own_page(headers: &HeaderMap) -> bool {
    let text =
        |name: &HeaderName| headers.get(name).map(|value| value.to_str().unwrap_or_default());
    match (text(&SEC_FETCH_SITE), text(&header::ORIGIN)) {
        (Some(site), _) => site == "same-origin",
        (None, Some(origin)) => is_own_origin(origin, text(&header::HOST)),
        (None, None) => true,
    }
}

/// The scheme is not compared, because the server does not know whether a proxy speaks HTTPS for it.
fn is_own_origin(origin: &str, host: Option<&str>) -> bool {
    let own = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
    own.zip(host).is_some_and(|(own, host)| own.eq_ignore_ascii_case(host))
}

#[cfg(test)]
mod tests {
    use axum::body::Body;

    use super::*;

    fn foreign(method: Method, headers: &[(&str, &str)], cors: &Cors) -> bool {
        let mut request = Request::builder().method(method).uri("/threads/t/runs/r/cancel");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        is_foreign(&request.body(Body::empty()).unwrap(), cors)
    }

    #[test]
    fn a_foreign_page_is_recognised_by_the_headers_that_browsers_send() {
        let cors = Cors {
            allow_localhost: true,
            allow_origins: vec!["https://app.example.com".to_owned()],
        };
        let host = ("host", "agents.example.com:8080");
        for (headers, is_foreign) in [
            // A program.
            (&[host][..], false),
            // Chrome, Firefox and Safari, to HTTPS or to this machine.
            (&[host, ("origin", "https://evil.example"), ("sec-fetch-site", "cross-site")], true),
            (
                &[host, ("origin", "https://evil.example.com"), ("sec-fetch-site", "same-site")],
                true,
            ),
            (
                &[host, ("origin", "https://app.example.com"), ("sec-fetch-site", "same-site")],
                false,
            ),
            (&[host, ("origin", "http://localhost:3000"), ("sec-fetch-site", "same-site")], false),
            (&[host, ("origin", "null"), ("sec-fetch-site", "cross-site")], true),
            (&[host, ("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "no-cors")], true),
            (&[host, ("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "navigate")], true),
            // A proxy has changed the host.
            (
                &[
                    ("host", "127.0.0.1:8080"),
                    ("origin", "https://x.example"),
                    ("sec-fetch-site", "same-origin"),
                ],
                false,
            ),
            (&[host, ("sec-fetch-site", "none")], false),
            // To plain HTTP, browsers send no Sec-Fetch-Site.
            (&[host, ("origin", "http://evil.example")], true),
            (&[host, ("origin", "null")], true),
            (&[host, ("origin", "")], true),
            (&[host, ("origin", "http://agents.example.com:8080")], false),
            (&[host, ("origin", "http://AGENTS.example.com:8080")], false),
            (&[host, ("origin", "http://agents.example.com")], true),
            (&[host, ("origin", "http://agents.example.com:8080.evil.example")], true),
            (&[host, ("origin", "agents.example.com:8080")], true),
            (&[("origin", "http://evil.example")], true),
        ] {
            assert_eq!(foreign(Method::POST, headers, &cors), is_foreign, "{headers:?}");
        }
    }

    #[test]
    fn an_own_page_is_of_the_same_origin() {
        for (headers, is_own) in [
            (&[("sec-fetch-site", "same-origin"), ("origin", "null")][..], true),
            (&[("sec-fetch-site", "same-site"), ("origin", "http://a.test")], false),
            (&[("sec-fetch-site", "none")], false),
            // A browser that does not know `Sec-Fetch-Site`.
            (&[("origin", "http://a.test")], true),
            (&[("origin", "http://a.test:1")], false),
            (&[("origin", "null")], false),
            (&[], true),
        ] {
            let request = headers
                .iter()
                .fold(Request::builder().header("host", "a.test"), |request, (name, value)| {
                    request.header(*name, *value)
                });
            assert_eq!(is_own_page(request.body(()).unwrap().headers()), is_own, "{headers:?}");
        }
    }

    #[test]
    fn only_a_followed_link_may_come_from_another_site() {
        let navigation = |dest: &'static str| {
            let site = [("host", "localhost"), ("sec-fetch-site", "cross-site")];
            [site[0], site[1], ("sec-fetch-mode", "navigate"), ("sec-fetch-dest", dest)]
        };
        let follow = navigation("document");
        let image = [
            ("host", "localhost"),
            ("sec-fetch-site", "cross-site"),
            ("sec-fetch-mode", "no-cors"),
        ];
        assert!(!foreign(Method::GET, &follow, &Cors::default()));
        for frame in ["iframe", "frame", "embed", "object", ""] {
            assert!(foreign(Method::GET, &navigation(frame), &Cors::default()), "{frame}");
        }
        assert!(foreign(Method::GET, &image, &Cors::default()));
        assert!(foreign(Method::DELETE, &follow, &Cors::default()));
    }

    #[test]
    fn a_star_in_the_list_allows_every_page() {
        let all = Cors { allow_localhost: false, allow_origins: vec!["*".to_owned()] };
        let headers = [("host", "localhost"), ("origin", "null"), ("sec-fetch-site", "cross-site")];
        assert!(!foreign(Method::POST, &headers, &all));
    }
}
