//! From a connection to a request that a route may see: connections, bodies, hosts, origins, callers.

pub(crate) mod cors;
pub(crate) mod extract;
pub(crate) mod foreign_page;
pub(crate) mod host;
pub(crate) mod media_type;
pub(crate) mod middleware;
pub(crate) mod own_address;
pub(crate) mod read_body;
pub(crate) mod request_id;
pub(crate) mod serve;
pub(crate) mod server_span;
pub(crate) mod stall_timeout;

use axum::http::HeaderName;

/// The header of a request's id.
pub(crate) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// The value `false` tells SDKs that repeat requests after some statuses not to repeat this one.
pub(crate) const SHOULD_RETRY: HeaderName = HeaderName::from_static("x-should-retry");
