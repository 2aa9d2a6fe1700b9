//! Requests of clients that have a copy of the response.

use axum::http::{HeaderMap, header};

/// Returns whether `If-None-Match` names an entity tag. The comparison is weak, as for all GET requests.
pub(crate) fn has_copy(request: &HeaderMap, etag: &str) -> bool {
    let etag = etag.trim_start_matches("W/");
    let known = request.get_all(header::IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    known.flat_map(|list| list.split(',')).any(|known| known.trim().trim_start_matches("W/") == etag)
}
