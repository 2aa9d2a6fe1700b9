//! Cross-origin requests (CORS): the web pages that may use the server.

use std::{collections::BTreeSet, time::Duration};

use axum::http::{HeaderValue, Method, header, request::Parts};
use parking_lot::Mutex;
use serde::Deserialize;
use smart_default::SmartDefault;
use tower_http::cors::{AllowCredentials, AllowHeaders, AllowOrigin, CorsLayer};

use super::{REQUEST_ID, SHOULD_RETRY, host};
use crate::http::error::ApiError;

/// The web pages that may use the server: the configuration section `[cors]`. Requests of all other pages are refused.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, SmartDefault)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct Cors {
    /// True allows pages that are served from this machine, on any port. They may send cookies only to a server without
    /// authentication.
    #[default(true)]
    pub allow_localhost: bool,
    /// Other allowed origins, such as `https://app.example.com`, which may send cookies. `*` allows all, without
    /// cookies.
    pub allow_origins: Vec<String>,
}

impl Cors {
    fn allows_all(&self) -> bool {
        self.allow_origins.iter().any(|origin| origin == "*")
    }

    fn is_listed(&self, origin: &str) -> bool {
        self.allow_origins.iter().any(|allowed| allowed.eq_ignore_ascii_case(origin))
    }

    fn is_local(&self, origin: &str) -> bool {
        self.allow_localhost && host::is_loopback_origin(origin)
    }

    pub(crate) fn allows(&self, origin: &str) -> bool {
        self.allows_all() || self.is_listed(origin) || self.is_local(origin)
    }

    /// With authentication, the credentials belong to the application's own pages. A page of this machine is not one of
    /// them: any program here can serve it.
    fn allows_credentials(&self, origin: &str, has_authentication: bool) -> bool {
        !self.allows_all()
            && (self.is_listed(origin) || (self.is_local(origin) && !has_authentication))
    }
}

/// The number of origins whose refused preflight is logged.
const MAX_LOGGED_ORIGINS: usize = 100;

/// The origins whose refused preflight was logged. The log is the only place of the reason:
/// browsers hide it from the page, which sends no other request.
#[derive(Default)]
struct LoggedOrigins(Mutex<BTreeSet<String>>);

impl LoggedOrigins {
    fn log(&self, origin: &HeaderValue) {
        if self.adds(&String::from_utf8_lossy(origin.as_bytes())) {
            let refusal = ApiError::foreign_origin(Some(origin));
            tracing::info!(reason = %refusal, "refused a preflight; logged once an origin");
        }
    }

    fn adds(&self, origin: &str) -> bool {
        let mut origins = self.0.lock();
        origins.len() < MAX_LOGGED_ORIGINS && origins.insert(origin.to_owned())
    }
}

pub(crate) fn layer(cors: &Cors, has_authentication: bool) -> CorsLayer {
    let origins = if cors.allows_all() {
        AllowOrigin::any()
    } else {
        let (cors, logged) = (cors.clone(), LoggedOrigins::default());
        AllowOrigin::predicate(move |origin: &HeaderValue, head: &Parts| {
            let is_allowed = origin.to_str().is_ok_and(|origin| cors.allows(origin));
            if !is_allowed && head.method == Method::OPTIONS {
                logged.log(origin);
            }
            is_allowed
        })
    };
    let cors = cors.clone();
    CorsLayer::new()
        .allow_origin(origins)
        // This server has no cookies, but a page may have to send those of the application or of a proxy. Browsers refuse
        // credentials together with `*`. The predicate adds the header to requests with an `Origin` only: one header more
        // would double the memory for the headers of every stream.
        .allow_credentials(AllowCredentials::predicate(move |origin, _| {
            origin.to_str().is_ok_and(|origin| cors.allows_credentials(origin, has_authentication))
        }))
        .allow_methods([Method::GET, Method::POST, Method::PATCH, Method::DELETE])
        .allow_headers(AllowHeaders::mirror_request())
        .expose_headers([
            REQUEST_ID,
            header::RETRY_AFTER,
            header::WWW_AUTHENTICATE,
            header::ETAG,
            header::LOCATION,
            SHOULD_RETRY,
        ])
        .max_age(Duration::from_secs(3600))
        // A browser keeps the response to a preflight for its origin, method and headers, and no other cache keeps one.
        .vary([header::ORIGIN])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_is_logged_once_and_the_number_of_origins_is_bounded() {
        let logged = LoggedOrigins::default();
        assert!(logged.adds("https://a.example") && !logged.adds("https://a.example"));
        let others = (0..2 * MAX_LOGGED_ORIGINS)
            .filter(|n| logged.adds(&format!("https://{n}.example")))
            .count();
        assert_eq!(others, MAX_LOGGED_ORIGINS - 1);
    }
}
