//! `GET /healthz` and `GET /readyz`, for load balancers and containers.

use axum::{Json, extract::State, http::StatusCode};
use serde::Serialize;
use utoipa::ToSchema;

use super::{App, state::Dependency, store_probe::StoreState};

#[derive(Serialize, ToSchema)]
pub(crate) struct Health {
    #[schema(pattern = "^ok$")]
    status: &'static str,
}

#[derive(Serialize, ToSchema)]
pub(crate) struct Readiness {
    status: ReadinessStatus,
    /// The dependencies that do not respond.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unavailable: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum ReadinessStatus {
    Ready,
    ShuttingDown,
    StoreUnavailable,
    /// Threads can be deleted, and running runs end.
    DiskFull,
    DependencyUnavailable,
}

/// Reports that the process is alive.
#[utoipa::path(
    get,
    path = "/healthz",
    responses((status = 200, description = "The process is alive.", body = Health))
)]
pub(crate) async fn check_health() -> Json<Health> {
    Json(Health { status: "ok" })
}

/// Reports that the server accepts runs.
///
/// Responds 200 if the server accepts runs, and 503 during a shutdown, while the store cannot be written, or while a
/// required dependency is not available. The names of all unavailable dependencies are in the response, and nothing
/// else about them: the route needs no key.
#[utoipa::path(
    get,
    path = "/readyz",
    responses(
        (status = 200, description = "The server accepts runs.", body = Readiness),
        (status = 503, description = "The server does not accept runs now.", body = Readiness),
    ),
)]
pub(crate) async fn check_readiness(State(app): State<App>) -> (StatusCode, Json<Readiness>) {
    let refused = |status| {
        (StatusCode::SERVICE_UNAVAILABLE, Json(Readiness { status, unavailable: Vec::new() }))
    };
    if !app.runs.is_ready() {
        return refused(ReadinessStatus::ShuttingDown);
    }
    let runs = app.runs.threads.clone();
    let check = || async move { runs.store.check().await };
    match app.store_probe.state(check).await {
        StoreState::Available => unavailable((app.dependencies)()),
        StoreState::Unavailable => refused(ReadinessStatus::StoreUnavailable),
        StoreState::DiskFull => refused(ReadinessStatus::DiskFull),
    }
}

fn unavailable(dependencies: Vec<Dependency>) -> (StatusCode, Json<Readiness>) {
    let missing: Vec<_> =
        dependencies.into_iter().filter(|dependency| !dependency.is_available).collect();
    let (code, status) = if missing.iter().any(|dependency| dependency.is_required) {
        (StatusCode::SERVICE_UNAVAILABLE, ReadinessStatus::DependencyUnavailable)
    } else {
        (StatusCode::OK, ReadinessStatus::Ready)
    };
    let unavailable = missing.into_iter().map(|dependency| dependency.name).collect();
    (code, Json(Readiness { status, unavailable }))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_a_required_dependency_makes_the_server_unready() {
        let dependency = |name: &str, is_available, is_required| Dependency {
            name: name.into(),
            is_available,
            is_required,
        };
        let all = |states: [(bool, bool); 2]| {
            let [(a, a_required), (b, b_required)] = states;
            let (status, Json(body)) = unavailable(vec![
                dependency("mcp:a", a, a_required),
                dependency("mcp:b", b, b_required),
            ]);
            (status.as_u16(), json!(body))
        };
        assert_eq!(all([(true, true), (true, false)]), (200, json!({ "status": "ready" })));
        let one = json!({ "status": "ready", "unavailable": ["mcp:b"] });
        assert_eq!(all([(true, true), (false, false)]), (200, one));
        let both = json!({ "status": "dependency_unavailable", "unavailable": ["mcp:a", "mcp:b"] });
        assert_eq!(all([(false, false), (false, true)]), (503, both));
    }
}
