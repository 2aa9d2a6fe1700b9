//! The router of the whole server.

use std::{convert::Infallible, sync::Arc};

use axum::{Router, extract::Request, response::Response, routing::get};
use tower::{Service, ServiceExt as _};
use utoipa::OpenApi as _;
use utoipa_axum::{
    router::{OpenApiRouter, UtoipaMethodRouter},
    routes,
};

use super::{
    accept::middleware,
    agents, connect,
    dialects::tanstack::join,
    fallback, files, follow, health, index, metrics,
    openapi::{
        self,
        document::document,
        served::{LazyDocument, ServedDocument},
    },
    options::HttpOptions,
    own_path::AgentPath,
    route_list::{Route, RouteAccess, RouteList},
    send_message,
    state::{App, AppState, Credential, Dependencies},
    threads,
};
use crate::auth::Authenticator;
use agui_run::host::Runs;

/// The router of the server, and the routers of a listener for metrics alone.
pub(crate) struct Routers {
    pub(crate) main: Router,
    /// For loopback addresses.
    pub(crate) open_metrics: Router,
    /// For other addresses.
    pub(crate) authenticated_metrics: Router,
}

/// Routes of one tag of the document, whose callers are checked in the same way.
pub(crate) struct RouteSet {
    tag: &'static str,
    access: RouteAccess,
    /// The only path that `GET /` lists. Without it, all are listed.
    listed: Option<String>,
    router: OpenApiRouter<App>,
}

impl RouteSet {
    pub(crate) fn new(tag: &'static str, access: RouteAccess, router: OpenApiRouter<App>) -> Self {
        Self { tag, access, listed: None, router }
    }

    /// The other routes are parts of the one at this path.
    pub(crate) fn listing_only(self, path: &str) -> Self {
        Self { listed: Some(path.to_owned()), ..self }
    }

    /// Returns the declared routes.
    pub(crate) fn list(&mut self) -> impl Iterator<Item = Route> {
        let Self { listed, router, .. } = self;
        let paths = router.get_openapi_mut().paths.paths.iter_mut();
        paths.map(|(path, item)| {
            Route::new(path, item, listed.as_ref().is_none_or(|listed| listed == path))
        })
    }
}

/// Serves a route at another path than the one that it declares.
pub(crate) fn at(
    path: &str,
    (schemas, mut paths, handlers): UtoipaMethodRouter<App>,
) -> UtoipaMethodRouter<App> {
    paths.paths = paths.paths.into_values().map(|item| (path.to_owned(), item)).collect();
    (schemas, paths, handlers)
}

/// The routes at paths of the server's own.
pub(crate) fn built_in(has_metrics: bool) -> Vec<RouteSet> {
    let runs = OpenApiRouter::with_openapi(join::JoinSchemas::openapi())
        .routes(unnamed_agent("/send-message", None))
        .routes(named_agent())
        .routes(routes!(connect::connect_thread))
        .routes(routes!(follow::follow_run));
    let agents = OpenApiRouter::new()
        .routes(routes!(agents::list_agents))
        .routes(routes!(agents::read_capabilities));
    let mut server = OpenApiRouter::new();
    if has_metrics {
        server = server.routes(routes!(metrics::read_metrics));
    }
    server = server.routes(routes!(openapi::routes::read_open_api));
    let index = OpenApiRouter::new().routes(routes!(index::describe_server));
    let health = OpenApiRouter::new()
        .routes(routes!(health::check_health))
        .routes(routes!(health::check_readiness));
    vec![
        RouteSet::new("runs", RouteAccess::Authenticated, runs),
        RouteSet::new("agents", RouteAccess::Authenticated, agents),
        RouteSet::new("threads", RouteAccess::Authenticated, threads::routes()),
        RouteSet::new("files", RouteAccess::ChecksItself, files::routes()),
        RouteSet::new("server", RouteAccess::Authenticated, server),
        RouteSet::new("server", RouteAccess::ChecksItself, index),
        RouteSet::new("server", RouteAccess::Public, health),
    ]
}

/// Serves a path with a slash at its end as the route without it: a front end puts its URL together, or an operator writes it
/// so. It is the fallback of the routes, so that the paths of routes take no step more.
fn without_last_slash(
    routes: Router,
) -> impl Service<Request, Response = Response, Error = Infallible, Future: Send> + Clone {
    routes.map_request(|mut request: Request| {
        let (path, query) = (request.uri().path().trim_end_matches('/'), request.uri().query());
        if !path.is_empty() && path.len() < request.uri().path().len() {
            let query = query.map(|query| format!("?{query}")).unwrap_or_default();
            if let Ok(uri) = format!("{path}{query}").parse() {
                *request.uri_mut() = uri;
            }
        }
        request
    })
}

/// The agent that a path names. `GET` joins a run, or returns a thread.
fn named_agent() -> UtoipaMethodRouter<App> {
    routes!(send_message::run_agent, join::join_agent)
}

/// An agent, or without one the default agent, at a path without its name. Its routes are declared
/// like those of a named agent.
fn unnamed_agent(path: &str, agent: Option<Arc<str>>) -> UtoipaMethodRouter<App> {
    let (schemas, mut paths, _) = at(path, named_agent());
    let name = agent
        .as_ref()
        .map_or_else(|| "the default agent".to_owned(), |agent| format!("the agent {agent}"));
    for item in paths.paths.values_mut() {
        if let Some(run) = &mut item.post {
            run.summary = Some(format!("Runs {name}"));
            run.operation_id = Some("run_default_agent".to_owned());
        }
        if let Some(join) = &mut item.get {
            join.operation_id = Some("join_default_agent".to_owned());
        }
    }
    (schemas, paths, send_message::agent_of(agent).get(join::join_default_agent))
}

/// An agent at a path of its own: as if it were the default agent.
pub(crate) fn own_path(AgentPath { path, agent }: AgentPath) -> RouteSet {
    let routes = OpenApiRouter::new().routes(unnamed_agent(&path, Some(agent)));
    RouteSet::new("runs", RouteAccess::Authenticated, routes)
}

/// Builds the routers. With `has_metrics`, `GET /metrics` is a main route. Optional routes get the
/// same middleware. `GET /readyz` reports `dependencies`, the servers that agents use.
///
/// # Panics
/// Panics if a path is invalid or already routed.
pub(crate) fn router(
    runs: Arc<Runs>,
    auth: Authenticator,
    options: HttpOptions,
    has_metrics: bool,
    paths: Vec<AgentPath>,
    mut optional: Vec<RouteSet>,
    dependencies: Dependencies,
) -> Routers {
    let mut built_in = built_in(has_metrics);
    optional.extend(paths.into_iter().map(own_path));
    let list = RouteList::new(
        built_in.iter_mut().flat_map(RouteSet::list),
        optional.iter_mut().flat_map(RouteSet::list),
    );
    let (mut public, mut private) = (Router::new(), Router::new());
    let mut declared = Vec::new();
    for RouteSet { tag, access, router, .. } in built_in.into_iter().chain(optional) {
        let (routes, openapi) = router.split_for_parts();
        declared.push((tag, access, openapi));
        match access {
            RouteAccess::Authenticated => private = private.merge(routes),
            RouteAccess::ChecksItself | RouteAccess::Public => public = public.merge(routes),
        }
    }
    let credential = Credential::for_authenticator(&auth);
    let document =
        LazyDocument::new(Box::new(move || ServedDocument::new(document(declared, credential))));
    let app = Arc::new(AppState::new(runs, auth, options, list, document, dependencies));
    let routes = public
        .merge(middleware::authenticated(private, &app))
        .fallback(fallback::no_such_route)
        .method_not_allowed_fallback(fallback::method_not_allowed);
    let finish = |routes: Router<App>| middleware::stack(routes, &app).with_state(app.clone());
    let main = finish(routes);
    Routers {
        main: main.clone().fallback_service(without_last_slash(main)),
        open_metrics: finish(Router::new().route("/metrics", get(metrics::on_loopback))),
        authenticated_metrics: finish(middleware::authenticated(
            Router::new().route("/metrics", get(metrics::for_principals)),
            &app,
        )),
    }
}
