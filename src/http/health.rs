//! Whether the server is alive, and whether it takes runs: for load balancers and containers.

use axum::{Json, extract::State, http::StatusCode};
use serde_json::{Value, json};

use super::App;

/// The process answers.
pub(super) async fn alive() -> Json<Value> {
    Json(json!({ "status": "ok" }))
}

/// New runs are taken; at shutdown they no longer are.
pub(super) async fn ready(State(app): State<App>) -> (StatusCode, Json<Value>) {
    if app.runner().is_ready() {
        (StatusCode::OK, Json(json!({ "status": "ready" })))
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, Json(json!({ "status": "shutting_down" })))
    }
}
