//! The router of the whole server.

use std::sync::Arc;

use axum::{
    Router,
    routing::{get, post},
};

use super::{
    agents, connect, fallback, follow, health, index, middleware,
    options::{AgentPath, HttpOptions},
    route_list::{Route, RouteList},
    send_message,
    state::App,
    threads,
};
use crate::{auth::Authenticator, run::Runs};

pub(crate) struct FurtherRoutes<F> {
    pub(crate) list: Vec<Route>,
    pub(crate) build: F,
}

/// Without stored threads, there are no routes below `/threads`. The further routes get the same middleware.
///
/// # Panics
/// Panics if a path is invalid or already routed.
pub(crate) fn router<F: FnOnce(&App) -> Router<App>>(
    runs: Arc<Runs>,
    auth: Authenticator,
    options: HttpOptions,
    paths: Vec<AgentPath>,
    further: FurtherRoutes<F>,
) -> Router {
    let list = RouteList::new(runs.threads().is_some(), &paths, further.list);
    let app = App::new(runs, auth, options, list);
    let public = Router::new()
        .route("/", get(index::index))
        .route("/healthz", get(health::alive))
        .route("/readyz", get(health::ready));
    let mut private = Router::new()
        .route("/send-message", post(send_message::default_agent))
        .route("/agents", get(agents::list))
        .route("/agents/{agent}/send-message", post(send_message::named_agent))
        .route("/agents/{agent}/capabilities", get(agents::capabilities));
    if app.threads().is_some() {
        private = private
            .route("/threads", get(threads::list))
            .route("/threads/{thread}", get(threads::read).delete(threads::delete))
            .route("/threads/{thread}/connect", post(connect::connect))
            .route("/threads/{thread}/runs/{run}/events", get(follow::events))
            .route("/threads/{thread}/runs/{run}/cancel", post(threads::cancel));
    }
    private = private.merge((further.build)(&app));
    for AgentPath { path, agent } in paths {
        private = private.route(&path, send_message::agent_of(agent));
    }
    let routes = public
        .merge(middleware::authenticated(private, &app))
        .fallback(fallback::no_such_route)
        .method_not_allowed_fallback(fallback::method_not_allowed);
    middleware::stack(routes, &app).with_state(app)
}

#[cfg(test)]
mod tests {
    use axum::{
        body::Body,
        http::{Method, Request, StatusCode},
    };
    use tower::ServiceExt as _;

    use super::*;
    use crate::store::MemoryStore;

    #[tokio::test]
    async fn the_listed_routes_are_those_that_are_served() {
        let runs = Runs::builder().stored(Arc::new(MemoryStore::new()), Default::default());
        let further = FurtherRoutes { list: Vec::new(), build: |_: &App| Router::new() };
        let router = router(runs, Authenticator::disabled(), HttpOptions::default(), Vec::new(), further);
        for route in RouteList::new(true, &[], Vec::new()).all() {
            let path = route.path.replace(['{', '}'], "");
            for method in [Method::GET, Method::POST, Method::DELETE] {
                let request = Request::builder().method(&method).uri(&path).header("host", "localhost");
                let status = router.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap().status();
                let is_served = status != StatusCode::METHOD_NOT_ALLOWED;
                assert_eq!(is_served, route.methods.contains(method.as_str()), "{method} {path}: {status}");
            }
        }
    }
}
