//! `GET /agents` and `GET /agents/{agent}/capabilities`.

use axum::{Extension, Json, extract::State};
use serde::Serialize;
use utoipa::ToSchema;

use super::{ApiResult, App, Caller, Path, read_run::find_agent, refuse};
use agui_agent::{Principal, host::AgentEntry};
use agui_protocol::{AgentCapabilities, capabilities::TransportCapabilities};

#[derive(Serialize, ToSchema)]
pub(crate) struct AgentList {
    agents: Vec<AgentSummary>,
    /// The path of the route that makes text of speech; absent if the server has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    transcribe: Option<String>,
}

#[derive(Serialize, ToSchema)]
pub(crate) struct AgentSummary {
    pub(crate) name: String,
    /// True for the agent that `/send-message` runs.
    pub(crate) default: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) description: Option<String>,
}

/// Lists the agents that the caller may use.
#[utoipa::path(
    get,
    path = "/agents",
    responses((status = 200, description = "The agents.", body = AgentList))
)]
pub(crate) async fn list_agents(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
) -> Json<AgentList> {
    let transcribe = app.options.transcribe_path.clone();
    Json(AgentList { agents: summaries(&app, caller.principal.as_ref()), transcribe })
}

/// The agents that the caller may use, in the order in which they were added.
pub(crate) fn summaries(app: &App, caller: Option<&Principal>) -> Vec<AgentSummary> {
    let default = app.runs.default_agent();
    let agents = app.agents(caller).map(|agent| AgentSummary {
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
    responses(
        (status = 200, description = "The capabilities.", body = AgentCapabilities),
        refuse::Agent,
    ),
)]
pub(crate) async fn read_capabilities(
    State(app): State<App>,
    Path(agent): Path<String>,
    Extension(caller): Extension<Caller>,
) -> ApiResult<Json<AgentCapabilities>> {
    let agent = find_agent(&app, Some(&agent))?;
    app.require_allowed(&agent, caller.principal.as_ref())?;
    Ok(Json(declared(&app, &agent)))
}

/// Returns the declared capabilities of an agent, and the capabilities of this server's transport.
pub(crate) fn declared(app: &App, entry: &AgentEntry) -> AgentCapabilities {
    let mut capabilities = entry.capabilities();
    capabilities.transport = Some(TransportCapabilities {
        streaming: Some(true),
        http_binary: Some(true),
        websocket: Some(false),
        push_notifications: Some(false),
        // A detached run is resumed from its log.
        resumable: Some(app.threads.core.options.runs.max_detached() > 0),
    });
    capabilities
}
