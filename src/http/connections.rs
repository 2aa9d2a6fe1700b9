//! `GET /connections`, `DELETE /connections/{server}`: the accounts that the caller has connected.

use std::sync::Arc;

use axum::{Extension, Json, http::StatusCode};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    ApiError, ApiResult, App, Caller, Path, RouteAccess, RouteSet, login_pages, refuse,
    threads::pages::{TimeText, time},
};
use agui_agent::host::{Connected, LoginError, Logins};

pub(crate) fn route_sets(logins: Arc<dyn Logins>) -> Vec<RouteSet> {
    let routes: OpenApiRouter<App> =
        OpenApiRouter::new().routes(routes!(list_connections)).routes(routes!(revoke_connection));
    let own = RouteSet::new(
        "connections",
        RouteAccess::Authenticated,
        routes.layer(Extension(logins.clone())),
    );
    vec![own, login_pages::route_set(logins)]
}

/// The accounts that a caller has connected.
#[derive(Serialize, ToSchema)]
struct ConnectionList {
    connections: Vec<Connection>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Connection {
    /// The name of the MCP server, or the host of the web service.
    server: String,
    connected_at: TimeText,
    /// What the authorization server granted, if it says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    scope: Option<String>,
    /// When another login is needed. Absent for a connection that is renewed.
    #[serde(skip_serializing_if = "Option::is_none")]
    ends_at: Option<TimeText>,
}

/// Lists the accounts at other servers that the caller has connected.
#[utoipa::path(
    get,
    path = "/connections",
    responses((status = 200, description = "The connections, without tokens.", body = ConnectionList), refuse::Store)
)]
async fn list_connections(
    Extension(logins): Extension<Arc<dyn Logins>>,
    Extension(caller): Extension<Caller>,
) -> ApiResult<Json<ConnectionList>> {
    let connected = logins.list(&caller.owner()).await?;
    let connection = |Connected { server, since, scope, ends_at }| Connection {
        server,
        connected_at: time(since),
        scope,
        ends_at: ends_at.map(time),
    };
    Ok(Json(ConnectionList { connections: connected.into_iter().map(connection).collect() }))
}

/// Disconnects an account: its tokens are deleted, and revoked where they are from.
#[utoipa::path(
    delete,
    path = "/connections/{server}",
    params(("server" = String, Path, description = "As it is listed.")),
    responses((status = 204, description = "The account is not connected."), refuse::Store)
)]
async fn revoke_connection(
    Extension(logins): Extension<Arc<dyn Logins>>,
    Extension(caller): Extension<Caller>,
    Path(server): Path<String>,
) -> ApiResult<StatusCode> {
    logins.revoke(&caller.owner(), &server).await?;
    Ok(StatusCode::NO_CONTENT)
}

impl From<LoginError> for ApiError {
    fn from(error: LoginError) -> Self {
        match error {
            LoginError::Store(error) => Self::Store(error),
            LoginError::Refused(_) | LoginError::Failed(_) => Self::Internal,
        }
    }
}
