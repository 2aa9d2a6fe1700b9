//! `GET /accounts`, `DELETE /accounts/{server}`: the accounts of a caller at other servers.

use std::sync::Arc;

use axum::{Extension, Json, http::StatusCode};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    ApiError, ApiResult, App, Caller, Path, RouteAccess, RouteSet, login_pages, refuse,
    threads::pages::{TimeText, time},
};
use agui_agent::host::{ConnectedAccount, LoginError, Logins};

pub(crate) fn route_sets(logins: Arc<dyn Logins>) -> Vec<RouteSet> {
    let routes: OpenApiRouter<App> =
        OpenApiRouter::new().routes(routes!(list_accounts)).routes(routes!(disconnect_account));
    let own = RouteSet::new(
        login_pages::ACCOUNTS,
        RouteAccess::Authenticated,
        routes.layer(Extension(logins.clone())),
    );
    vec![own, login_pages::route_set(logins)]
}

/// The accounts that a caller has connected.
#[derive(Serialize, ToSchema)]
struct AccountList {
    accounts: Vec<Account>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Account {
    /// The name of the MCP server, or the host of the web service.
    server: String,
    connected_at: TimeText,
    /// The scope that the authorization server granted, if it says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    scope: Option<String>,
    /// The time from which another login is needed. Absent if this server renews the tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    ends_at: Option<TimeText>,
}

/// Lists the caller's accounts at other servers.
#[utoipa::path(
    get,
    path = "/accounts",
    responses((status = 200, description = "The accounts, without tokens.", body = AccountList), refuse::Store)
)]
async fn list_accounts(
    Extension(logins): Extension<Arc<dyn Logins>>,
    Extension(caller): Extension<Caller>,
) -> ApiResult<Json<AccountList>> {
    let connected = logins.list(&caller.owner()).await?;
    let account = |ConnectedAccount { server, since, scope, ends_at }| Account {
        server,
        connected_at: time(since),
        scope,
        ends_at: ends_at.map(time),
    };
    Ok(Json(AccountList { accounts: connected.into_iter().map(account).collect() }))
}

/// Disconnects an account: deletes its tokens, and revokes them at the authorization server.
#[utoipa::path(
    delete,
    path = "/accounts/{server}",
    params(("server" = String, Path, description = "The name from the list.")),
    responses((status = 204, description = "The account is not connected."), refuse::Store)
)]
async fn disconnect_account(
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
