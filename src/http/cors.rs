//! Cross-origin requests (CORS): the web pages that may use the server.

use std::time::Duration;

use axum::http::{HeaderValue, Method, header, request::Parts};
use serde::Deserialize;
use tower_http::cors::{AllowCredentials, AllowHeaders, AllowOrigin, CorsLayer};

use super::{host, request_id::REQUEST_ID};

/// The web pages that may use the server: the configuration section `[cors]`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Cors {
    /// True allows pages that are served from this machine, on any port.
    pub allow_localhost: bool,
    /// Other allowed origins, such as `https://app.example.com`; `*` allows all.
    pub allow_origins: Vec<String>,
}

impl Default for Cors {
    fn default() -> Self {
        Self { allow_localhost: true, allow_origins: Vec::new() }
    }
}

pub(super) fn layer(cors: &Cors) -> CorsLayer {
    let allows_all = cors.allow_origins.iter().any(|origin| origin == "*");
    let origins = if allows_all {
        AllowOrigin::any()
    } else {
        let cors = cors.clone();
        AllowOrigin::predicate(move |origin: &HeaderValue, _: &Parts| {
            origin.to_str().is_ok_and(|origin| {
                (cors.allow_localhost && host::is_loopback_origin(origin))
                    || cors.allow_origins.iter().any(|allowed| allowed.eq_ignore_ascii_case(origin))
            })
        })
    };
    CorsLayer::new()
        .allow_origin(origins)
        // This server has no cookies, but a page may have to send those of a proxy before it. Browsers refuse credentials
        // together with `*`. The predicate adds the header to requests with an `Origin` only: one header more would
        // double the memory for the headers of every stream.
        .allow_credentials(AllowCredentials::predicate(move |_, _| !allows_all))
        .allow_methods([Method::GET, Method::POST, Method::DELETE])
        .allow_headers(AllowHeaders::mirror_request())
        .expose_headers([REQUEST_ID, header::RETRY_AFTER, header::WWW_AUTHENTICATE])
        .max_age(Duration::from_secs(3600))
}
