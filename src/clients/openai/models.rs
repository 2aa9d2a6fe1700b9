//! `GET /v1/models` and `GET /v1/models/{model}`: the agents that the caller may use.

use axum::{Extension, Json, extract::State};
use serde::Serialize;
use utoipa::ToSchema;

use crate::http::{ApiResult, App, Caller, Path, read_run::find_agent, refuse};

/// The agents.
#[derive(Serialize, ToSchema)]
pub(super) struct ModelList {
    #[schema(pattern = "^list$")]
    object: &'static str,
    data: Vec<ListedModel>,
}

/// An agent.
#[derive(Serialize, ToSchema)]
pub(super) struct ListedModel {
    /// The agent's name.
    id: String,
    #[schema(pattern = "^model$")]
    object: &'static str,
    /// Always 0: the server does not know when an agent was made.
    created: u64,
    #[schema(pattern = "^agui-server$")]
    owned_by: &'static str,
}

impl ListedModel {
    fn new(agent: &str) -> Self {
        Self { id: agent.to_owned(), object: "model", created: 0, owned_by: "agui-server" }
    }
}

/// Lists the agents that the caller may use, as models.
#[utoipa::path(
    get,
    path = "/v1/models",
    responses((status = 200, description = "The agents.", body = ModelList))
)]
pub(super) async fn list_models(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
) -> Json<ModelList> {
    let agents = app.agents(caller.principal.as_ref());
    let data = agents.map(|agent| ListedModel::new(agent.name())).collect();
    Json(ModelList { object: "list", data })
}

/// Returns an agent as a model.
#[utoipa::path(
    get,
    path = "/v1/models/{model}",
    responses((status = 200, description = "The agent.", body = ListedModel), refuse::Agent)
)]
pub(super) async fn read_model(
    State(app): State<App>,
    Path(model): Path<String>,
    Extension(caller): Extension<Caller>,
) -> ApiResult<Json<ListedModel>> {
    let agent = find_agent(&app, Some(&model))?;
    app.require_allowed(&agent, caller.principal.as_ref())?;
    Ok(Json(ListedModel::new(agent.name())))
}
