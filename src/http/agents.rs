//! `GET /agents` and `GET /agents/{agent}/capabilities`.

use axum::{Json, extract::State};
use serde::Serialize;
use utoipa::ToSchema;

use super::{accept::extract::Path, error::ApiError, read_run::find_agent, state::App};
use crate::http::openapi::refuse;
use crate::{
    protocol::{AgentCapabilities, capabilities::TransportCapabilities},
    run::AgentEntry,
};

#[derive(Serialize, ToSchema)]
pub(crate) struct AgentList {
    agents: Vec<AgentSummary>,
}

#[derive(Serialize, ToSchema)]
pub(crate) struct AgentSummary {
    pub(crate) name: String,
    /// True for the agent that `/send-message` runs.
    pub(crate) default: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) description: Option<String>,
}

/// Lists the agents.
#[utoipa::path(
    get,
    path = "/agents",
    operation_id = "listAgents",
    tag = "agents",
    responses((status = 200, description = "The agents.", body = AgentList))
)]
pub(crate) async fn list(State(app): State<App>) -> Json<AgentList> {
    Json(AgentList { agents: summaries(&app) })
}

/// In the order in which the agents were added.
pub(crate) fn summaries(app: &App) -> Vec<AgentSummary> {
    let default = app.runs().default_agent();
    let agents = app.runs().agents().map(|agent| AgentSummary {
        name: agent.name().to_owned(),
        default: Some(agent.name()) == default,
        description: agent.capabilities().identity.and_then(|identity| identity.description),
    });
    agents.collect()
}

/// Returns the capabilities that an agent declares.
#[utoipa::path(
    get,
    path = "/agents/{agent}/capabilities",
    operation_id = "readCapabilities",
    tag = "agents",
    responses(
        (status = 200, description = "The capabilities.", body = AgentCapabilities),
        refuse::Agent,
    ),
)]
pub(crate) async fn capabilities(
    State(app): State<App>,
    Path(agent): Path<String>,
) -> Result<Json<AgentCapabilities>, ApiError> {
    Ok(Json(declared(&app, &find_agent(&app, Some(&agent))?)))
}

/// Returns the capabilities that an agent declares, and those of this server's transport.
pub(crate) fn declared(app: &App, entry: &AgentEntry) -> AgentCapabilities {
    let mut capabilities = entry.capabilities();
    capabilities.transport = Some(TransportCapabilities {
        streaming: Some(true),
        http_binary: Some(true),
        websocket: Some(false),
        push_notifications: Some(false),
        resumable: Some(app.threads().is_some_and(|threads| threads.accepts_detached_runs())),
    });
    capabilities
}
