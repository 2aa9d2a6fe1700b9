//! What every request passes before its route, in one place and in order.

use std::{any::Any, panic::AssertUnwindSafe, time::Duration};

use axum::{
    Router,
    extract::{Request, State},
    http::{HeaderName, HeaderValue, Method, header, request::Parts},
    middleware::{Next, from_fn, from_fn_with_state},
    response::Response,
};
use futures::FutureExt as _;
use serde::Deserialize;
use tower_http::cors::{AllowCredentials, AllowHeaders, AllowOrigin, CorsLayer};
use tracing::Instrument as _;

use super::{App, error::ApiError, host};
use crate::auth::Principal;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Which pages may use the server from a browser.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Cors {
    /// Pages served from this machine, on any port.
    pub allow_localhost: bool,
    /// Origins such as `https://app.example.com`; `*` allows all.
    pub allow_origins: Vec<String>,
}

impl Default for Cors {
    fn default() -> Self {
        Self { allow_localhost: true, allow_origins: Vec::new() }
    }
}

/// Puts the layers around the routes; the first of them is the outermost.
pub(super) fn stack(routes: Router<App>, app: &App) -> Router<App> {
    let layers = tower::ServiceBuilder::new()
        // Outermost, so that every log line of the request carries its id, and every response does.
        .layer(from_fn(identify_request))
        // Before anything that refuses: a page must be able to read why it was refused, and a preflight
        // carries no credentials that could be checked.
        .layer(cors(&app.options().cors))
        // Before credentials: who comes by a name that is not this machine's learns nothing from it.
        .layer(from_fn_with_state(app.clone(), check_host));
    routes.layer(layers)
}

/// Asks for credentials on these routes. Health checks and unknown paths need none.
pub(super) fn authenticated(routes: Router<App>, app: &App) -> Router<App> {
    routes.route_layer(from_fn_with_state(app.clone(), authenticate))
}

/// The authenticated principal, kept with the request; `None` on a server without authentication.
#[derive(Clone)]
pub(crate) struct Caller(Option<Principal>);

impl Caller {
    pub(crate) fn principal(&self) -> Option<Principal> {
        self.0.clone()
    }
}

async fn authenticate(State(app): State<App>, request: Request, next: Next) -> Result<Response, ApiError> {
    let (mut head, body) = request.into_parts();
    let principal = app.auth().authenticate(&head).await?;
    head.extensions.insert(Caller(principal));
    Ok(next.run(Request::from_parts(head, body)).await)
}

/// Also the last resort for a handler that panics, which is answered with a 500. tower-http's layer for
/// that would wrap every body in two more boxes. An agent's panic never comes here: it happens while
/// the body is polled, and the run's driver turns it into an event.
async fn check_host(State(app): State<App>, request: Request, next: Next) -> Result<Response, ApiError> {
    let loopback_only = app.options().loopback_hosts_only.unwrap_or(app.auth().is_disabled());
    if loopback_only && !names_loopback(&request) {
        return Err(ApiError::foreign_host());
    }
    AssertUnwindSafe(next.run(request)).catch_unwind().await.map_err(panicked)
}

/// Both the `Host` header and an absolute request target, if there is one, must name this machine.
fn names_loopback(request: &Request) -> bool {
    let mut hosts = request.headers().get_all(header::HOST).iter();
    let by_header = hosts.next().and_then(|host| host.to_str().ok()).is_some_and(host::is_loopback);
    let by_target = request.uri().authority().is_none_or(|authority| host::is_loopback(authority.as_str()));
    by_header && hosts.next().is_none() && by_target
}

/// Gives the request an id, the client's own if it sent a sensible one, and everything that is logged
/// about it a span with that id.
async fn identify_request(mut request: Request, next: Next) -> Response {
    let id = match request.headers().get(REQUEST_ID) {
        Some(id) if is_sensible(id) => id.clone(),
        _ => {
            let mut text = [0; uuid::fmt::Simple::LENGTH];
            let id = uuid::Uuid::new_v4().simple().encode_lower(&mut text);
            HeaderValue::from_str(id).unwrap_or(HeaderValue::from_static("unknown"))
        }
    };
    request.headers_mut().insert(REQUEST_ID, id.clone());
    let span = tracing::info_span!("request", id = id.to_str().unwrap_or_default());
    let mut response = next.run(request).instrument(span).await;
    response.headers_mut().insert(REQUEST_ID, id);
    response
}

/// What is repeated in every log line of a request has to be short and plain.
fn is_sensible(id: &HeaderValue) -> bool {
    let bytes = id.as_bytes();
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.:/+=".contains(byte);
    (1..=64).contains(&bytes.len()) && bytes.iter().all(plain)
}

fn cors(cors: &Cors) -> CorsLayer {
    let anybody = cors.allow_origins.iter().any(|origin| origin == "*");
    let origins = if anybody {
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
        // There are no cookies of this server's, but a page may have to send those of a proxy before it. Browsers
        // refuse that together with `*`. Only who has an origin is told: the next header would double the room
        // that each stream has for its headers.
        .allow_credentials(AllowCredentials::predicate(move |_, _| !anybody))
        .allow_methods([Method::GET, Method::POST, Method::DELETE])
        .allow_headers(AllowHeaders::mirror_request())
        .expose_headers([REQUEST_ID, header::RETRY_AFTER, header::WWW_AUTHENTICATE])
        .max_age(Duration::from_secs(3600))
}

fn panicked(panic: Box<dyn Any + Send>) -> ApiError {
    let text = panic.downcast_ref::<&str>().copied().or(panic.downcast_ref::<String>().map(String::as_str));
    tracing::error!(panic = text.unwrap_or("not a text"), "a request handler panicked");
    ApiError::internal()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_short_plain_request_ids_are_taken_over() {
        for id in ["a", "0f8-a_b.c:d", &"x".repeat(64)] {
            assert!(is_sensible(&HeaderValue::from_str(id).unwrap()), "{id}");
        }
        for id in ["", "a b", "é", "a\"b", &"x".repeat(65)] {
            assert!(!is_sensible(&HeaderValue::from_bytes(id.as_bytes()).unwrap()), "{id}");
        }
    }
}
