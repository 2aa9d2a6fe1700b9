//! `GET /healthz` and `GET /readyz`, for load balancers and containers.

use axum::{Json, extract::State, http::StatusCode};
use serde_json::{Value, json};

use super::state::App;

pub(super) async fn alive() -> Json<Value> {
    Json(json!({ "status": "ok" }))
}

/// Answers 200 if the server accepts runs, and 503 during a shutdown or while the store is not available.
pub(super) async fn ready(State(app): State<App>) -> (StatusCode, Json<Value>) {
    let refused = |status| (StatusCode::SERVICE_UNAVAILABLE, Json(json!({ "status": status })));
    if !app.runs().is_ready() {
        return refused("shutting_down");
    }
    if let Some(threads) = app.threads()
        && let Err(error) = threads.check().await
    {
        tracing::warn!(?error, "the store is not available");
        return refused("store_unavailable");
    }
    (StatusCode::OK, Json(json!({ "status": "ready" })))
}
