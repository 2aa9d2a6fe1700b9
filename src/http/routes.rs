//! The router of the whole server.

use std::{convert::Infallible, sync::Arc};

use axum::{Router, extract::Request, middleware::map_response, response::Response, routing::get};
use futures::future::BoxFuture;
use tower::{Service, ServiceExt as _};
use utoipa_axum::{
    router::{OpenApiRouter, UtoipaMethodRouter},
    routes,
};

use super::{
    accept::middleware,
    agents,
    client::Clients,
    connect, fallback, files, follow, health, index, metrics,
    openapi::{
        self,
        document::{DeclaredRoutes, OWN_REFUSALS, document},
        served::{LazyDocument, ServedDocument},
    },
    options::HttpOptions,
    route_list::{RUNS, Route, RouteAccess, RouteList, Tag},
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
    tag: Tag,
    access: RouteAccess,
    /// The only path that `GET /` lists. Without it, all are listed.
    listed: Option<String>,
    refusals: Option<RefusalForm>,
    router: OpenApiRouter<App>,
}

/// The form of refusals on routes whose clients cannot read the server's own.
#[derive(Clone, Copy)]
pub(crate) struct RefusalForm {
    /// The name of its schema. `None` for a text, which is the message.
    pub(crate) schema: Option<&'static str>,
    /// Rewrites a refusal, and leaves other responses as they are.
    pub(crate) rewrite: fn(Response) -> BoxFuture<'static, Response>,
}

impl RouteSet {
    pub(crate) fn new(tag: Tag, access: RouteAccess, router: OpenApiRouter<App>) -> Self {
        Self { tag, access, listed: None, refusals: None, router }
    }

    /// The other routes are parts of the one at this path.
    pub(crate) fn listing_only(self, path: &str) -> Self {
        Self { listed: Some(path.to_owned()), ..self }
    }

    /// Refusals have another form, also those of the authentication.
    pub(crate) fn refusing_as(self, form: RefusalForm) -> Self {
        Self { refusals: Some(form), ..self }
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

const SERVER: Tag = ("server", "The server itself.");

/// The routes at paths of the server's own, without those of the clients.
pub(crate) fn built_in(has_metrics: bool) -> Vec<RouteSet> {
    let runs = OpenApiRouter::new()
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
        RouteSet::new(RUNS, RouteAccess::Authenticated, runs),
        RouteSet::new(("agents", "The agents of the server."), RouteAccess::Authenticated, agents),
        RouteSet::new(
            ("threads", "The caller's conversations."),
            RouteAccess::Authenticated,
            threads::routes(),
        ),
        RouteSet::new(
            ("files", "Files of messages: pictures, documents, sound."),
            RouteAccess::ChecksItself,
            files::routes(),
        ),
        RouteSet::new(SERVER, RouteAccess::Authenticated, server),
        RouteSet::new(SERVER, RouteAccess::ChecksItself, index),
        RouteSet::new(SERVER, RouteAccess::Public, health),
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

/// Builds the routers. Optional routes get the same middleware as those that are built in. `GET /readyz` reports `dependencies`, the servers that agents use.
///
/// # Panics
/// Panics if a path is invalid or already routed.
pub(crate) fn router(
    runs: Arc<Runs>,
    auth: Authenticator,
    options: HttpOptions,
    clients: Clients,
    mut built_in: Vec<RouteSet>,
    mut optional: Vec<RouteSet>,
    dependencies: Dependencies,
) -> Routers {
    let list = RouteList::new(
        built_in.iter_mut().flat_map(RouteSet::list),
        optional.iter_mut().flat_map(RouteSet::list),
    );
    let (mut public, mut private) = (Router::new(), Router::new());
    let (mut declared, mut with_form) = (Vec::new(), Vec::new());
    for RouteSet { tag, access, refusals, router, .. } in built_in.into_iter().chain(optional) {
        let (routes, openapi) = router.split_for_parts();
        let error = refusals.map_or(Some(OWN_REFUSALS), |form| form.schema);
        declared.push(DeclaredRoutes { tag, access, error, openapi });
        match (access, refusals) {
            (RouteAccess::Authenticated, Some(form)) => with_form.push((routes, form)),
            (RouteAccess::Authenticated, None) => private = private.merge(routes),
            (RouteAccess::ChecksItself | RouteAccess::Public, _) => public = public.merge(routes),
        }
    }
    let credential = Credential::for_authenticator(&auth);
    let document =
        LazyDocument::new(Box::new(move || ServedDocument::new(document(declared, credential))));
    let app = Arc::new(AppState::new(runs, auth, options, clients, list, document, dependencies));
    for (routes, form) in with_form {
        let routes = middleware::authenticated(routes, &app);
        public = public.merge(routes.layer(map_response(form.rewrite)));
    }
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
