//! The middleware around all routes, in one place and in order.

use std::{any::Any, panic::AssertUnwindSafe, sync::Arc};

use axum::{
    Router,
    extract::{MatchedPath, OriginalUri, Request, State},
    http::{HeaderValue, Method, header, request::Parts},
    middleware::{Next, from_fn_with_state},
    response::{IntoResponse as _, Response},
};
use futures::FutureExt as _;
use tower_http::set_header::SetResponseHeaderLayer;

use super::{
    cors, foreign_page::is_foreign, host, own_address::OwnAddress, request_id::identify_request,
    serve::BeyondLimit,
};
use crate::http::{accept::media_type::require_json_or_no_body, error::ApiError, state::App};
use agui_agent::{Principal, host::owner_of};
use agui_protocol::ThreadId;
use agui_store::ThreadKey;

/// Caches of browsers and proxies keep no response whose handler does not say that they may.
const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");

/// The first layer is the outermost.
pub(crate) fn stack(routes: Router<App>, app: &App) -> Router<App> {
    let layers = tower::ServiceBuilder::new()
        // First, so that every log line and every response has the request's id.
        .layer(from_fn_with_state(app.clone(), identify_request))
        // Also for refusals. Only a handler knows that a response is for other people as well, or for a browser's cache.
        .layer(SetResponseHeaderLayer::if_not_present(header::CACHE_CONTROL, NO_STORE))
        // Before everything that refuses: a page must be able to read the refusal, and a preflight has no credentials.
        .layer(cors::layer(&app.options.cors, !app.auth.is_disabled()))
        .layer(from_fn_with_state(app.clone(), protect));
    routes.layer(layers)
}

/// Health checks and unknown paths are outside of it.
pub(crate) fn authenticated(routes: Router<App>, app: &App) -> Router<App> {
    routes.route_layer(from_fn_with_state(app.clone(), authenticate))
}

#[derive(Clone)]
pub(crate) struct Caller {
    /// `None` without authentication.
    pub(crate) principal: Option<Principal>,
    /// The address at which it has reached this server.
    pub(crate) reached_at: OwnAddress,
}

impl Caller {
    /// The owner of its threads and permits.
    pub(crate) fn owner(&self) -> Arc<str> {
        owner_of(self.principal.as_ref())
    }

    pub(crate) fn key(&self, thread: ThreadId) -> ThreadKey {
        ThreadKey { owner: self.owner(), id: thread }
    }
}

/// Authenticates the caller, then checks the media type of the body, and the method.
async fn authenticate(
    State(app): State<App>,
    request: Request,
    next: Next,
) -> Result<Response, ApiError> {
    let (mut head, body) = request.into_parts();
    let caller = authenticate_caller(&app, &head).await?;
    require_json_or_no_body(&head, &body)?;
    if let Some(refusal) = refusal_of_head(&app, &head) {
        return Ok(refusal);
    }
    head.extensions.insert(caller);
    Ok(next.run(Request::from_parts(head, body)).await)
}

pub(crate) async fn authenticate_caller(app: &App, head: &Parts) -> Result<Caller, ApiError> {
    let reached_at = OwnAddress::from_head(head, app.options.public_url.as_deref());
    Ok(Caller { principal: app.auth.authenticate(head).await?, reached_at })
}

/// Returns the refusal of a `HEAD`, for which axum calls the handler of `GET`: it would read a whole thread, and send nothing
/// of it.
fn refusal_of_head(app: &App, head: &Parts) -> Option<Response> {
    if head.method != Method::HEAD {
        return None;
    }
    let original = head.extensions.get().map_or(&head.uri, |OriginalUri(original)| original);
    let methods = app.routes.find(head.uri.path()).map_or("GET", |route| route.methods.as_str());
    let refusal = ApiError::method_not_allowed(&Method::HEAD, original.path(), Some(methods));
    Some(([(header::ALLOW, methods.to_owned())], refusal).into_response())
}

/// Makes the checks before authentication, which can take long. They are one layer, because each
/// layer boxes the request's future.
async fn protect(
    State(app): State<App>,
    request: Request,
    next: Next,
) -> Result<Response, ApiError> {
    if !reads_file(&request) {
        refuse_foreign(&app, &request)?;
    }
    refuse_beyond_limit(&request)?;
    // tower-http's layer for panics would box every body twice more. Panics of agents do not reach this one: they happen
    // while the body is polled, and the run's driver turns them into an event.
    AssertUnwindSafe(next.run(request)).catch_unwind().await.map_err(panicked)
}

/// Returns whether the request reads a file: its handler refuses foreign requests itself, unless the URL has a valid signature.
fn reads_file(request: &Request) -> bool {
    let route = request.extensions().get::<MatchedPath>();
    matches!(*request.method(), Method::GET | Method::HEAD)
        && route.is_some_and(|route| route.as_str().ends_with("/files/{file}"))
}

/// Refuses requests for a host name that is not this server's, and requests of foreign web pages.
/// The refusals reveal nothing.
///
/// The host is checked without authentication only: a page that rebinds its DNS name has no credential. The health checks of
/// load balancers are requests of HTTP/1.0 without a host, which no browser sends.
pub(crate) fn refuse_foreign(app: &App, request: &Request) -> Result<(), ApiError> {
    let options = &app.options;
    let host = request.headers().get(header::HOST);
    let is_probe = host.is_none() && is_health_check(request);
    if app.auth.is_disabled() && !is_probe && !has_own_host(request, &options.allowed_hosts) {
        return Err(ApiError::foreign_host(host));
    }
    if is_foreign(request, &options.cors) {
        Err(ApiError::foreign_origin(request.headers().get(header::ORIGIN)))
    } else {
        Ok(())
    }
}

/// Refuses everything but health checks on connections beyond the limit.
fn refuse_beyond_limit(request: &Request) -> Result<(), ApiError> {
    let is_beyond_limit = request.extensions().get::<BeyondLimit>().is_some();
    if is_beyond_limit && !is_health_check(request) {
        Err(ApiError::TooManyConnections)
    } else {
        Ok(())
    }
}

fn is_health_check(request: &Request) -> bool {
    matches!(request.uri().path(), "/healthz" | "/readyz")
}

pub(crate) fn has_own_host(request: &Request, allowed: &[String]) -> bool {
    if allowed.iter().any(|name| name == "*") {
        return true;
    }
    let is_own = |host: &str| host::is_own(host, allowed);
    let mut hosts = request.headers().get_all(header::HOST).iter();
    let by_header = hosts.next().and_then(|host| host.to_str().ok()).is_some_and(is_own);
    let by_target = request.uri().authority().is_none_or(|authority| is_own(authority.as_str()));
    by_header && hosts.next().is_none() && by_target
}

fn panicked(panic: Box<dyn Any + Send>) -> ApiError {
    let text = panic
        .downcast_ref::<&str>()
        .copied()
        .or(panic.downcast_ref::<String>().map(String::as_str));
    tracing::error!(panic = text.unwrap_or("not a text"), "a request handler panicked");
    ApiError::Internal
}
