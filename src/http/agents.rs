//! Which agents there are, and what they say about themselves.

use axum::{Json, extract::State};
use serde::Serialize;

use super::{App, error::ApiError, extract::Path};
use crate::{
    protocol::{AgentCapabilities, capabilities::TransportCapabilities},
    run::AgentEntry,
};

#[derive(Serialize)]
pub(super) struct List {
    agents: Vec<Summary>,
}

#[derive(Serialize)]
struct Summary {
    name: String,
    /// Whether `/send-message` runs it.
    default: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
}

/// `GET /agents`
pub(super) async fn list(State(app): State<App>) -> Json<List> {
    let default = app.runs().default_agent();
    let agents = app.runs().agents().map(|agent| Summary {
        name: agent.name().to_owned(),
        default: Some(agent.name()) == default,
        description: agent.capabilities().identity.and_then(|identity| identity.description),
    });
    Json(List { agents: agents.collect() })
}

/// `GET /agents/{agent}/capabilities`: what the agent declares, and how this server carries it.
pub(super) async fn capabilities(
    State(app): State<App>,
    Path(agent): Path<String>,
) -> Result<Json<AgentCapabilities>, ApiError> {
    let entry = app.runs().agent(Some(&agent)).ok_or_else(|| ApiError::unknown_agent(&agent))?;
    Ok(Json(declared(&app, &entry)))
}

/// What an agent declares, and how this server carries it.
pub(crate) fn declared(app: &App, entry: &AgentEntry) -> AgentCapabilities {
    let mut capabilities = entry.capabilities();
    capabilities.transport = Some(TransportCapabilities {
        streaming: Some(true),
        http_binary: Some(true),
        websocket: Some(false),
        push_notifications: Some(false),
        resumable: Some(app.threads().is_some()),
    });
    capabilities
}
