//! The router of the whole server.

use std::sync::Arc;

use axum::{
    Router,
    routing::{get, post},
};

use super::{
    agents, connect,
    dependencies::Dependencies,
    fallback, follow, health, index, join, metrics, middleware,
    options::{AgentPath, HttpOptions},
    route_list::{METRICS_PATH, Route, RouteList},
    run_log, send_message,
    state::App,
    threads,
};
use crate::{auth::Authenticator, metrics::TextFormat, run::Runs};

type BuildRoutes = Box<dyn FnOnce(&App) -> Router<App>>;

/// Returns the metrics of the moment in the text format of OpenMetrics.
pub(crate) type ReadMetrics = Box<dyn Fn() -> String + Send + Sync>;

/// The router of the server, those of a listener for metrics alone, and the metrics without a listener.
pub(crate) struct Routers {
    pub(crate) main: Router,
    /// For loopback addresses.
    pub(crate) open_metrics: Router,
    /// For other addresses.
    pub(crate) authenticated_metrics: Router,
    pub(crate) read_metrics: ReadMetrics,
}

/// Routes of another module, and their list.
pub(crate) struct RouteSet {
    list: Vec<Route>,
    /// True: they need no credential, or check their callers themselves.
    is_public: bool,
    build: BuildRoutes,
}

impl RouteSet {
    /// Routes that need a credential, if the server authenticates. The list may also have routes of a public set.
    pub(crate) fn private(list: Vec<Route>, build: impl FnOnce(&App) -> Router<App> + 'static) -> Self {
        Self { list, is_public: false, build: Box::new(build) }
    }

    pub(crate) fn public(list: Vec<Route>, build: impl FnOnce(&App) -> Router<App> + 'static) -> Self {
        Self { list, is_public: true, build: Box::new(build) }
    }
}

/// Without stored threads, there are no routes below `/threads`. `has_metrics`: `GET /metrics` is one of the main routes. The
/// further routes get the same middleware. `dependencies`: the servers that agents use, for `GET /readyz`.
///
/// # Panics
/// Panics if a path is invalid or already routed.
pub(crate) fn router(
    runs: Arc<Runs>,
    auth: Authenticator,
    options: HttpOptions,
    has_metrics: bool,
    paths: Vec<AgentPath>,
    mut further: Vec<RouteSet>,
    dependencies: Dependencies,
) -> Routers {
    let further_list = further.iter_mut().flat_map(|set| std::mem::take(&mut set.list)).collect();
    let list = RouteList::new(runs.threads().is_some(), has_metrics, &paths, further_list);
    let app = App::new(runs, auth, options, list, dependencies);
    let mut public = Router::new()
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
            .route("/send-message", get(join::default_agent))
            .route("/agents/{agent}/send-message", get(join::named_agent))
            .route("/threads", get(threads::list))
            .route("/threads/events", get(threads::events))
            .route("/threads/import", post(threads::import))
            .route("/threads/{thread}", get(threads::read).patch(threads::edit).delete(threads::delete))
            .route("/threads/{thread}/messages", get(threads::messages))
            .route("/threads/{thread}/messages/{message}/feedback", post(threads::give_feedback))
            .route("/threads/{thread}/fork", post(threads::fork))
            .route("/threads/{thread}/export", get(threads::export))
            .route("/threads/{thread}/connect", post(connect::connect))
            .route("/threads/{thread}/runs/{run}/events", get(follow::events))
            .route("/threads/{thread}/runs/{run}/log", get(run_log::read).head(run_log::head))
            .route("/threads/{thread}/runs/{run}/recording", get(threads::recording))
            .route("/threads/{thread}/runs/{run}/cancel", post(threads::cancel));
    }
    if has_metrics {
        private = private.route(METRICS_PATH, get(metrics::on_main_listener));
    }
    for set in further {
        let routes = (set.build)(&app);
        if set.is_public {
            public = public.merge(routes);
        } else {
            private = private.merge(routes);
        }
    }
    for AgentPath { path, agent } in paths {
        private = private.route(&path, send_message::agent_of(agent));
        if app.threads().is_some() {
            private = private.route(&path, get(join::default_agent));
        }
    }
    let routes = public
        .merge(middleware::authenticated(private, &app))
        .fallback(fallback::no_such_route)
        .method_not_allowed_fallback(fallback::method_not_allowed);
    let finish = |routes: Router<App>| middleware::stack(routes, &app).with_state(app.clone());
    Routers {
        main: finish(routes),
        open_metrics: finish(Router::new().route(METRICS_PATH, get(metrics::on_loopback))),
        authenticated_metrics: finish(middleware::authenticated(
            Router::new().route(METRICS_PATH, get(metrics::for_principals)),
            &app,
        )),
        read_metrics: Box::new(move || metrics::to_text(&app, TextFormat::OpenMetrics)),
    }
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
        let (auth, dependencies) = (Authenticator::disabled(), Arc::new(Vec::new));
        let router = router(runs, auth, HttpOptions::default(), true, Vec::new(), Vec::new(), dependencies).main;
        for route in RouteList::new(true, true, &[], Vec::new()).all() {
            let path = route.path.replace(['{', '}'], "");
            for method in [Method::GET, Method::POST, Method::PATCH, Method::DELETE] {
                let request = Request::builder().method(&method).uri(&path).header("host", "localhost");
                let status = router.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap().status();
                let is_served = status != StatusCode::METHOD_NOT_ALLOWED;
                assert_eq!(is_served, route.methods.contains(method.as_str()), "{method} {path}: {status}");
            }
        }
    }
}
