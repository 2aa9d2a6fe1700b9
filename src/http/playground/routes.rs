//! The routes of the page's files. They are public.

use axum::{
    http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header},
    response::{IntoResponse as _, Response},
};
use bytes::Bytes;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::assets::{ASSETS, Asset};
use crate::http::{RouteAccess, RouteSet, etag::unless_current};

/// The path of the page.
pub(crate) const PATH: &str = "/playground";

/// Scripts, styles and requests belong to this server only. Images, sound and video are files of
/// messages: of this server, or `data:` and `blob:` URLs. Nothing that a model writes becomes
/// markup: scripts cannot write HTML at all.
const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
                                       img-src 'self' data: blob:; media-src 'self' data: blob:; base-uri 'none'; \
                                       form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; \
                                       trusted-types 'none'";

pub(crate) fn route_set() -> RouteSet {
    let routes = OpenApiRouter::new()
        .routes(routes!(page))
        .routes(routes!(redirect_to_playground))
        .routes(routes!(script))
        .routes(routes!(style))
        .routes(routes!(icon));
    RouteSet::new(("playground", "A page to try the agents."), RouteAccess::Public, routes)
        .listing_only(PATH)
}

/// Declares the files: handler and asset, path, id, purpose, media type.
macro_rules! files {
    ($($handler:ident = $path:tt, $id:tt, $purpose:tt, $media_type:tt;)*) => {$(
        #[utoipa::path(
            get,
            path = $path,
            operation_id = $id,
            summary = $purpose,
            params(("If-None-Match" = Option<String>, Header, description = "The `ETag` of the client's copy.")),
            responses(
                (status = 200, description = "The file.", body = String, content_type = $media_type, headers(("ETag" = String, description = "Names this version of the file."))),
                (status = 304, description = "The client's copy is current."),
            ),
        )]
        async fn $handler(headers: HeaderMap) -> Response {
            respond(&ASSETS.$handler, &headers)
        }
    )*};
}

files! {
    page = "/playground", "openPlayground", "Is a page to try the agents", "text/html";
    script = "/playground/main.js", "readPlaygroundScript", "Is the page's script", "text/javascript";
    style = "/playground/main.css", "readPlaygroundStyle", "Is the page's style", "text/css";
    icon = "/playground/icon.svg", "readPlaygroundIcon", "Is the page's icon", "image/svg+xml";
}

/// Leads to the page.
///
/// The addresses in the page are relative to the path without a slash at its end.
#[utoipa::path(
    get,
    path = "/playground/",
    responses((status = 308, description = "The page.")),
)]
async fn redirect_to_playground() -> (StatusCode, [(HeaderName, &'static str); 1]) {
    (StatusCode::PERMANENT_REDIRECT, [(header::LOCATION, "../playground")])
}

fn respond(asset: &Asset, request: &HeaderMap) -> Response {
    let mut response =
        unless_current(request, &asset.etag, || content(asset, accepts_gzip(request)));
    let headers = response.headers_mut();
    // A cache asks each time, so a page never has files of two versions.
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("public, no-cache"));
    headers.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
    headers
        .insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(CONTENT_SECURITY_POLICY));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(
        HeaderName::from_static("referrer-policy"),
        HeaderValue::from_static("no-referrer"),
    );
    headers.insert(
        HeaderName::from_static("cross-origin-opener-policy"),
        HeaderValue::from_static("same-origin"),
    );
    response
}

fn content(asset: &Asset, with_gzip: bool) -> Response {
    let is_compressed = with_gzip && !asset.gzip.is_empty();
    let body = if is_compressed { asset.gzip.clone() } else { Bytes::from_static(asset.content) };
    let mut response = body.into_response();
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(asset.media_type));
    if is_compressed {
        response.headers_mut().insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    response
}

/// True if the client names gzip without refusing it (`gzip;q=0`).
fn accepts_gzip(request: &HeaderMap) -> bool {
    let codings =
        request.get_all(header::ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    codings.flat_map(|list| list.split(',')).any(|coding| {
        let (name, parameters) = coding.split_once(';').unwrap_or((coding, ""));
        let quality = parameters
            .trim()
            .strip_prefix("q=")
            .map_or(Ok(1.0), |quality| quality.trim().parse::<f32>());
        name.trim().eq_ignore_ascii_case("gzip") && quality.is_ok_and(|quality| quality > 0.0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gzip_is_sent_to_clients_that_accept_it() {
        for (accepted, expected) in [
            ("gzip", true),
            ("br, GZip;q=0.5", true),
            ("gzip; q=1", true),
            ("", false),
            ("br", false),
            ("gzip;q=0", false),
            ("gzip;q=0.000, br", false),
            ("gzip;q=x", false),
        ] {
            let headers = HeaderMap::from_iter([(
                header::ACCEPT_ENCODING,
                HeaderValue::from_static(accepted),
            )]);
            assert_eq!(accepts_gzip(&headers), expected, "{accepted:?}");
        }
        assert!(!accepts_gzip(&HeaderMap::new()));
    }
}
