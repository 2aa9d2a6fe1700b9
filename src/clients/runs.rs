//! The routes that run an agent for any client of AG-UI, and the ways to join a run at the same paths.

use std::sync::Arc;

use utoipa::OpenApi as _;
use utoipa_axum::{
    router::{OpenApiRouter, UtoipaMethodRouter},
    routes,
};

use super::tanstack::join;
use crate::http::{AgentPath, App, RUNS, RouteAccess, RouteSet, at, send_message};

/// The routes at paths of the server's own.
pub(crate) fn route_set() -> RouteSet {
    let routes = OpenApiRouter::with_openapi(join::JoinSchemas::openapi())
        .routes(unnamed_agent("/send-message", None))
        .routes(named_agent());
    RouteSet::new(RUNS, RouteAccess::Authenticated, routes)
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
    RouteSet::new(RUNS, RouteAccess::Authenticated, routes)
}
