//! Requests of clients that have a copy of the response.

use axum::{
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{IntoResponse as _, Response},
};
use sha2::{Digest as _, Sha256};

use agui_base::text::hex;

/// Returns the entity tag of a content. It is a weak one, because it stands for all encodings of the content.
pub(crate) fn etag_of(content: &[u8]) -> HeaderValue {
    let hash = hex(&Sha256::digest(content)[..12]);
    HeaderValue::try_from(format!("W/\"{hash}\""))
        .unwrap_or_else(|_| HeaderValue::from_static("W/\"\""))
}

/// Responds with the content, or with 304 to a client that has this version of it.
pub(crate) fn unless_current(
    request: &HeaderMap,
    etag: &HeaderValue,
    content: impl FnOnce() -> Response,
) -> Response {
    let mut response = if has_copy(request, etag.to_str().unwrap_or_default()) {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        content()
    };
    response.headers_mut().insert(header::ETAG, etag.clone());
    response
}

/// Returns whether `If-None-Match` names an entity tag, which is given with or without its quotation marks. The comparison is weak, as for all GET requests.
pub(crate) fn has_copy(request: &HeaderMap, etag: &str) -> bool {
    let etag = etag.trim_start_matches("W/").trim_matches('"');
    let known =
        request.get_all(header::IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    known
        .flat_map(|list| list.split(','))
        .any(|known| known.trim().trim_start_matches("W/").trim_matches('"') == etag)
}
