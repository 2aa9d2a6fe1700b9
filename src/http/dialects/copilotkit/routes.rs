//! The routes below the prefix, and the route that starts a run.

use std::sync::Arc;

use axum::{
    Extension,
    extract::{Request, State},
    response::Response,
};
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    CopilotKitOptions,
    agents::find_agent,
    connect, debug_events,
    envelope::{self, EnvelopeRoutes},
    info, inspect,
    join_token::JoinTokens,
    socket, stop, suggest, threads,
};
use crate::{
    http::{
        App, RouteAccess, RouteSet,
        accept::extract::Path,
        at,
        error::ApiError,
        follow::LastEventId,
        openapi::{answer, refuse},
        send_message::run_agent,
    },
    protocol::RunAgentInput,
};

/// Returns the routes: those that need a credential, and the WebSocket, which needs a token. `GET /` names only the prefix,
/// which is what a page needs.
pub(crate) fn route_sets(options: &CopilotKitOptions, stores_threads: bool) -> Vec<RouteSet> {
    if !options.enabled {
        return Vec::new();
    }
    let (prefix, tokens) = (options.prefix.as_str(), Arc::new(JoinTokens::default()));
    let mut routes = OpenApiRouter::new()
        .routes(routes!(info::info))
        .routes(routes!(debug_events::debug_events))
        .routes(routes!(run))
        .routes(routes!(connect::connect))
        .routes(routes!(suggest::suggest))
        .routes(routes!(stop::stop));
    if stores_threads {
        routes = routes.merge(thread_routes()).layer(Extension(tokens.clone()));
    }
    let routes = routes.layer(Extension(options.clone()));
    let envelopes = OpenApiRouter::new()
        .routes(at(prefix, routes!(envelope::envelope)))
        .routes(at(&format!("{prefix}/"), routes!(envelope::envelope)))
        .layer(Extension(Arc::new(EnvelopeRoutes::new(routes.clone().into()))));
    let routes = OpenApiRouter::new().nest(prefix, routes).merge(envelopes);
    let mut sets = vec![RouteSet::new(RouteAccess::Authenticated, routes).listing_only(prefix)];
    if stores_threads {
        sets.push(socket::route_set(prefix, tokens));
    }
    sets
}

fn thread_routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(threads::list_threads))
        .routes(routes!(socket::subscribe))
        .routes(routes!(threads::update_thread, threads::delete_thread))
        .routes(routes!(threads::archive_thread))
        .routes(routes!(inspect::thread_messages))
        .routes(routes!(inspect::thread_state))
        .routes(routes!(inspect::thread_events))
}

/// Runs an agent.
#[utoipa::path(
    post,
    path = "/agent/{agent}/run",
    operation_id = "runCopilotAgent",
    tag = "CopilotKit",
    params(LastEventId),
    request_body = RunAgentInput,
    responses(
        answer::EventAnswer, answer::CaughtUp, refuse::Agent, refuse::Body, refuse::Follow, refuse::Limits,
        refuse::Parameter, refuse::Start, refuse::Stateless, refuse::Store,
    ),
)]
async fn run(
    State(app): State<App>,
    Path(agent): Path<String>,
    Extension(options): Extension<CopilotKitOptions>,
    request: Request,
) -> Result<Response, ApiError> {
    run_agent(&app, find_agent(&app, &agent)?, Some(options.on_disconnect), request).await
}
