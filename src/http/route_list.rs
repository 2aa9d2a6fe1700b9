//! The list of the server's routes, for `GET /` and for errors about unknown paths and methods. It
//! consists of the handlers' declarations.

use serde::Serialize;
use utoipa::{
    ToSchema,
    openapi::path::{Operation, PathItem},
};

/// The least similarity of a route that is suggested for an unknown path, from 0 to 1.
const MIN_SIMILARITY: f64 = 0.7;
/// The longest path that is compared with the routes, in bytes and in segments.
const MAX_COMPARED_BYTES: usize = 200;
const MAX_COMPARED_SEGMENTS: usize = 12;

/// The name of a set of routes in the document, and what it is for.
pub(crate) type Tag = (&'static str, &'static str);

pub(crate) const RUNS: Tag =
    ("runs", "Runs of agents, and detached runs, which continue without their client.");

/// The place of a route's authentication.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RouteAccess {
    /// The middleware.
    Authenticated,
    /// The handler.
    ChecksItself,
    /// The route needs no credential.
    Public,
}

#[derive(Serialize, ToSchema)]
pub(crate) struct Route {
    pub(crate) methods: String,
    pub(crate) path: String,
    pub(crate) purpose: String,
    /// False for a part of a route that is listed: `GET /` leaves it out.
    #[serde(skip)]
    is_listed: bool,
}

impl Route {
    pub(crate) fn new(path: &str, item: &mut PathItem, is_listed: bool) -> Self {
        let operations =
            operations_mut(item).map(|(method, operation)| (method, purpose(operation)));
        let (methods, purposes): (Vec<_>, Vec<_>) = operations.unzip();
        Self {
            methods: methods.join(", "),
            path: path.to_owned(),
            purpose: purposes.join("; "),
            is_listed,
        }
    }
}

/// Returns the declared methods of a path.
pub(crate) fn operations_mut(
    item: &mut PathItem,
) -> impl Iterator<Item = (&'static str, &mut Operation)> {
    let PathItem { get, post, patch, delete, .. } = item;
    let methods = [("GET", get), ("POST", post), ("PATCH", patch), ("DELETE", delete)];
    methods.into_iter().filter_map(|(method, operation)| Some((method, operation.as_mut()?)))
}

/// Returns the first sentence of the handler's comment, without its full stop.
pub(crate) fn purpose(operation: &Operation) -> &str {
    operation.summary.as_deref().unwrap_or_default().trim_end_matches('.')
}

pub(crate) struct RouteList {
    routes: Vec<Route>,
    /// The number of routes at paths of the server's own. The others may have paths that are not public.
    built_in: usize,
}

impl RouteList {
    pub(crate) fn new(
        built_in: impl Iterator<Item = Route>,
        optional: impl Iterator<Item = Route>,
    ) -> Self {
        let mut routes: Vec<_> = built_in.collect();
        let built_in = routes.len();
        routes.extend(optional);
        Self { routes, built_in }
    }

    /// Returns the routes without the parts of others.
    pub(crate) fn listed(&self) -> impl Iterator<Item = &Route> {
        self.routes.iter().filter(|route| route.is_listed)
    }

    pub(crate) fn find(&self, path: &str) -> Option<&Route> {
        self.routes.iter().find(|route| matches(&route.path, path))
    }

    /// Returns the route that may be meant by a short path. The caller is not authenticated, and the comparison takes
    /// time with the square of the length.
    pub(crate) fn nearest(&self, path: &str) -> Option<String> {
        if path.len() > MAX_COMPARED_BYTES || path.split('/').count() > MAX_COMPARED_SEGMENTS {
            return None;
        }
        let similar = self.routes[..self.built_in].iter().map(|route| {
            let (expected, found) = fixed_segments(&route.path, path);
            (strsim::normalized_damerau_levenshtein(&expected, &found), route)
        });
        let similar = similar.filter(|(similarity, _)| *similarity >= MIN_SIMILARITY);
        let (_, route) = similar.max_by(|a, b| a.0.total_cmp(&b.0))?;
        Some(format!("{} {}", route.methods, route.path))
    }
}

fn is_parameter(segment: &str) -> bool {
    segment.starts_with('{')
}

fn matches(route: &str, path: &str) -> bool {
    let mut segments = path.split('/');
    let fits = |part: &str| {
        segments.next().is_some_and(|segment| {
            if is_parameter(part) { !segment.is_empty() } else { segment == part }
        })
    };
    route.split('/').all(fits) && segments.next().is_none()
}

/// Returns a route without its parameters, and a path without the segments at their places.
fn fixed_segments(route: &str, path: &str) -> (String, String) {
    let mut parts = route.split('/');
    let found: Vec<_> =
        path.split('/').filter(|_| !parts.next().is_some_and(is_parameter)).collect();
    let expected: Vec<_> = route.split('/').filter(|part| !is_parameter(part)).collect();
    (expected.join("/"), found.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        clients::runs,
        http::{AgentPath, routes},
    };

    fn list() -> RouteList {
        let path = AgentPath { path: "/api/shop".to_owned(), agent: "clerk".into() };
        let mut built_in = routes::built_in(true);
        built_in.push(runs::route_set());
        let mut own_path = runs::own_path(path);
        RouteList::new(built_in.iter_mut().flat_map(routes::RouteSet::list), own_path.list())
    }

    #[test]
    fn a_path_finds_its_route() {
        let methods = |path: &str| list().find(path).map(|route| route.methods.clone());
        assert_eq!(methods("/send-message").as_deref(), Some("GET, POST"));
        assert_eq!(methods("/threads/a").as_deref(), Some("GET, PATCH, DELETE"));
        assert_eq!(methods("/threads/a/runs/b/cancel").as_deref(), Some("POST"));
        assert_eq!(methods("/api/shop").as_deref(), Some("GET, POST"));
        for path in ["/threads/", "/threads/a/b", "/nowhere"] {
            assert_eq!(methods(path), None, "{path}");
        }
    }

    #[test]
    fn a_misspelled_path_gets_the_nearest_built_in_route() {
        let nearest = |path: &str| list().nearest(path);
        assert_eq!(nearest("/send-mesage").as_deref(), Some("GET, POST /send-message"));
        assert_eq!(nearest("/sendMessage").as_deref(), Some("GET, POST /send-message"));
        assert_eq!(
            nearest("/agents/demo/send_message").as_deref(),
            Some("GET, POST /agents/{agent}/send-message")
        );
        assert_eq!(
            nearest("/threads/a/run/b/events").as_deref(),
            Some("GET /threads/{thread}/runs/{run}/events")
        );
        assert_eq!(nearest("/api/shpo"), None, "the paths of agents may not be public");
        assert_eq!(nearest("/favicon.ico"), None);
        assert_eq!(
            nearest(&format!("/threads/{}/run/b/events", "a".repeat(100))),
            nearest("/threads/a/run/b/events")
        );
        assert_eq!(nearest(&format!("/threads/{}/x", "a".repeat(200))), None);
        assert_eq!(nearest(&format!("/send-mesage{}", "/".repeat(12))), None);
    }
}
