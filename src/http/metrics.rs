//! `GET /metrics`: the server's metrics as text.
//!
//! It is served on a listener of its own, and, if configured, beside the other routes. Without authentication it is for
//! processes of this machine; a proxy on this machine that adds no header of `serve.rs` has to block it.

use axum::{
    extract::{Request, State},
    http::header,
    response::{IntoResponse as _, Response},
};

use super::{
    ApiError, ApiResult, App,
    accept::{middleware::has_own_host, serve::is_from_this_machine},
    accepted, refuse,
};
use agui_observe::metrics::TextFormat;

/// Returns the server's metrics for Prometheus.
#[utoipa::path(
    get,
    path = "/metrics",
    responses(
        (status = 200, description = "The metrics.", content(
            (String = "text/plain"),
            (String = "application/openmetrics-text"),
        )),
        refuse::Loopback,
    ),
)]
pub(crate) async fn read_metrics(State(app): State<App>, request: Request) -> ApiResult {
    if app.auth.is_disabled() && !is_from_this_machine(&request) {
        return Err(ApiError::LoopbackOnly("the metrics"));
    }
    Ok(respond(&app, &request))
}

/// The route on a listener of its own, after authentication.
pub(crate) async fn for_principals(State(app): State<App>, request: Request) -> Response {
    respond(&app, &request)
}

/// The route on a listener of its own on loopback, without authentication. A page that rebinds its DNS name to loopback gets
/// nothing, also if the other routes have authentication.
pub(crate) async fn on_loopback(State(app): State<App>, request: Request) -> ApiResult {
    if !has_own_host(&request, &app.options.allowed_hosts) {
        return Err(ApiError::foreign_host(request.headers().get(header::HOST)));
    }
    Ok(respond(&app, &request))
}

fn respond(app: &App, request: &Request) -> Response {
    let format = TextFormat::negotiate(accepted(request.headers()));
    let metrics = app.runs.current_metrics();
    let as_gauge = |bytes: usize| i64::try_from(bytes).unwrap_or(i64::MAX);
    metrics.http.body_bytes_in_flight.set(as_gauge(app.body_budget.used_bytes()));
    metrics.http.run_memory_bytes.set(as_gauge(app.runs.memory.used_bytes()));
    ([(header::CONTENT_TYPE, format.media_type())], metrics.to_text(format)).into_response()
}
