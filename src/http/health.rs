//! Whether the server is alive, and whether it takes runs: for load balancers and containers.

use axum::{Json, extract::State, http::StatusCode};
use serde_json::{Value, json};

use super::App;

/// The process answers.
pub(super) async fn alive() -> Json<Value> {
    Json(json!({ "status": "ok" }))
}

/// New runs are taken; at shutdown, or without a store, they are not.
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
