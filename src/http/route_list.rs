//! The list of the server's routes, for `GET /`, for `/openapi.json`, and for errors about unknown paths and methods.
//!
//! Tests in `routes.rs` and `tests/http/openapi.rs` check that the router serves the routes of this list.

use std::borrow::Cow;

use serde::Serialize;

use super::options::AgentPath;

/// The least similarity of a route that is suggested for an unknown path, from 0 to 1.
const MIN_SIMILARITY: f64 = 0.7;

const RUN_ROUTES: &[(&str, &str)] =
    &[("/send-message", "runs the default agent"), ("/agents/{agent}/send-message", "runs an agent")];

const AGENT_ROUTES: &[(&str, &str, &str)] =
    &[("GET", "/agents", "lists the agents"), ("GET", "/agents/{agent}/capabilities", "describes an agent")];

const THREAD_ROUTES: &[(&str, &str, &str)] = &[
    ("GET", "/threads", "lists the caller's threads"),
    ("GET", "/threads/events", "streams the changes of the caller's threads"),
    ("POST", "/threads/import", "creates a thread from an export"),
    ("GET, PATCH, DELETE", "/threads/{thread}", "returns, changes or deletes a thread"),
    ("GET", "/threads/{thread}/messages", "returns the messages of a thread, page by page"),
    ("POST", "/threads/{thread}/messages/{message}/feedback", "stores feedback on a message"),
    ("POST", "/threads/{thread}/fork", "copies a branch to a new thread"),
    ("GET", "/threads/{thread}/export", "returns everything that is stored of a thread"),
    ("POST", "/threads/{thread}/connect", "streams a thread and its running run"),
    ("GET", "/threads/{thread}/runs/{run}/events", "follows a detached run"),
    ("GET, HEAD", "/threads/{thread}/runs/{run}/log", "reads a detached run as a durable stream"),
    ("GET", "/threads/{thread}/runs/{run}/recording", "returns a detached run as a recording"),
    ("POST", "/threads/{thread}/runs/{run}/cancel", "cancels a run"),
];

pub(super) const METRICS_PATH: &str = "/metrics";
const METRIC_ROUTES: &[(&str, &str, &str)] = &[("GET", METRICS_PATH, "returns the server's metrics")];

const SERVER_ROUTES: &[(&str, &str, &str)] = &[("GET", "/", "describes this server")];

const HEALTH_ROUTES: &[(&str, &str, &str)] = &[
    ("GET", "/healthz", "reports that the process is alive"),
    ("GET", "/readyz", "reports that the server accepts runs"),
];

#[derive(Debug, Clone, Serialize)]
pub(crate) struct Route {
    pub(crate) methods: &'static str,
    pub(crate) path: Cow<'static, str>,
    pub(crate) purpose: Cow<'static, str>,
    /// The path in the source. It names the route also on servers that serve it at another path or below another prefix.
    #[serde(skip)]
    #[allow(dead_code, reason = "for the feature `openapi`")]
    pub(crate) template: &'static str,
    /// True if the route needs no credential.
    #[serde(skip)]
    #[allow(dead_code, reason = "for the feature `openapi`")]
    pub(crate) is_public: bool,
    /// True for a part of a route that is listed: `GET /` leaves it out.
    #[serde(skip)]
    pub(crate) is_part: bool,
}

impl Route {
    pub(crate) fn new(methods: &'static str, template: &'static str, purpose: impl Into<Cow<'static, str>>) -> Self {
        let (path, purpose) = (template.into(), purpose.into());
        Self { methods, path, purpose, template, is_public: false, is_part: false }
    }

    /// Serves the route at another path than its template.
    pub(crate) fn at(self, path: impl Into<Cow<'static, str>>) -> Self {
        Self { path: path.into(), ..self }
    }

    pub(crate) fn public(self) -> Self {
        Self { is_public: true, ..self }
    }

    pub(crate) fn part(self) -> Self {
        Self { is_part: true, ..self }
    }
}

pub(super) struct RouteList {
    routes: Vec<Route>,
    /// The number of routes that this file lists. The others may have paths that are not public.
    built_in: usize,
}

impl RouteList {
    pub(super) fn new(stores_threads: bool, has_metrics: bool, paths: &[AgentPath], further: Vec<Route>) -> Self {
        // `GET` joins a run, or returns a thread.
        let (run_methods, threads) = if stores_threads { ("GET, POST", THREAD_ROUTES) } else { ("POST", &[][..]) };
        let runs: Vec<_> = RUN_ROUTES.iter().map(|(path, purpose)| (run_methods, *path, *purpose)).collect();
        let metrics = if has_metrics { METRIC_ROUTES } else { &[] };
        let built_in = [&runs, AGENT_ROUTES, threads, metrics, SERVER_ROUTES].concat();
        let route = |(methods, path, purpose): (_, _, &'static str)| Route::new(methods, path, purpose);
        let mut routes: Vec<Route> = built_in.into_iter().map(route).collect();
        routes.extend(HEALTH_ROUTES.iter().copied().map(route).map(Route::public));
        let built_in = routes.len();
        routes.extend(paths.iter().map(|AgentPath { path, agent }| {
            // As if the default agent were this one.
            Route::new(run_methods, "/send-message", format!("runs the agent {agent}")).at(path.clone())
        }));
        routes.extend(further);
        Self { routes, built_in }
    }

    pub(super) fn all(&self) -> &[Route] {
        &self.routes
    }

    /// Returns the routes without the parts of others.
    pub(super) fn listed(&self) -> impl Iterator<Item = &Route> {
        self.routes.iter().filter(|route| !route.is_part)
    }

    pub(super) fn find(&self, path: &str) -> Option<&Route> {
        self.routes.iter().find(|route| fill(&route.path, path) == path)
    }

    pub(super) fn nearest(&self, path: &str) -> Option<String> {
        let similar = self.routes[..self.built_in].iter().map(|route| {
            let filled = fill(&route.path, path);
            (strsim::normalized_damerau_levenshtein(&filled, path), route)
        });
        let similar = similar.filter(|(similarity, _)| *similarity >= MIN_SIMILARITY);
        let (_, route) = similar.max_by(|a, b| a.0.total_cmp(&b.0))?;
        Some(format!("{} {}", route.methods, route.path))
    }
}

/// Replaces the parameters of a route by the segments at their place in a path.
fn fill(route: &str, path: &str) -> String {
    let mut segments = path.split('/');
    let filled = route.split('/').map(|part| {
        let segment = segments.next().unwrap_or_default();
        if part.starts_with('{') && !segment.is_empty() { segment } else { part }
    });
    filled.collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list() -> RouteList {
        let path = AgentPath { path: "/api/shop".to_owned(), agent: "clerk".into() };
        RouteList::new(true, true, &[path], Vec::new())
    }

    #[test]
    fn a_path_finds_its_route() {
        let methods = |path: &str| list().find(path).map(|route| route.methods);
        assert_eq!(methods("/send-message"), Some("GET, POST"));
        assert_eq!(methods("/threads/a"), Some("GET, PATCH, DELETE"));
        assert_eq!(methods("/threads/a/runs/b/cancel"), Some("POST"));
        assert_eq!(methods("/api/shop"), Some("GET, POST"));
        for path in ["/threads/", "/threads/a/b", "/nowhere"] {
            assert_eq!(methods(path), None, "{path}");
        }
    }

    #[test]
    fn a_misspelled_path_gets_the_nearest_built_in_route() {
        let nearest = |path: &str| list().nearest(path);
        assert_eq!(nearest("/send-mesage").as_deref(), Some("GET, POST /send-message"));
        assert_eq!(nearest("/sendMessage").as_deref(), Some("GET, POST /send-message"));
        assert_eq!(nearest("/agents/demo/send_message").as_deref(), Some("GET, POST /agents/{agent}/send-message"));
        assert_eq!(nearest("/threads/a/run/b/events").as_deref(), Some("GET /threads/{thread}/runs/{run}/events"));
        assert_eq!(nearest("/api/shpo"), None, "the paths of agents may not be public");
        assert_eq!(nearest("/favicon.ico"), None);
    }
}
