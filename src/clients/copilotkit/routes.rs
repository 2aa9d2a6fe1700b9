//! The routes below the prefix, and the route that starts a run.

use std::sync::Arc;

use axum::{
    Extension,
    extract::{Request, State},
};
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    agents::find_agent,
    connect, debug_events,
    envelope::{self, EnvelopeRoutes},
    info, inspect,
    join_token::JoinTokens,
    socket, stop, threads,
    transcribe::{self, Transcribe, Transcriber},
};
use crate::{
    auth::ApiKey,
    http::{
        ApiResult, App, Path, RouteAccess, RouteSet, Tag, at,
        client_options::CopilotKitOptions,
        follow::LastEventId,
        refuse, response,
        run_response::respond_run,
        send_message::{read_input, run_or_reconnect},
    },
};
use agui_protocol::RunAgentInput;

const COPILOTKIT: Tag = ("CopilotKit", "The runtime for pages with CopilotKit.");

/// Returns the routes: those that need a credential, and the WebSocket, which needs a token. `GET /` names only the prefix,
/// which is what a page needs.
pub(crate) fn route_sets(
    options: &CopilotKitOptions,
    keys: &[ApiKey],
    transcription: Option<Arc<dyn Transcribe>>,
) -> Vec<RouteSet> {
    if !options.enabled {
        return Vec::new();
    }
    let (prefix, tokens) = (options.prefix.as_str(), Arc::new(JoinTokens::from_keys(keys)));
    let transcriber = Extension(Transcriber::new(transcription));
    let speech = OpenApiRouter::new()
        .routes(routes!(transcribe::transcribe_copilot_speech))
        .layer(transcriber);
    let routes = OpenApiRouter::new()
        .routes(routes!(info::read_copilot_info))
        .routes(routes!(debug_events::follow_copilot_runs))
        .routes(routes!(run_copilot_agent))
        .routes(routes!(connect::connect_copilot_thread))
        .routes(routes!(suggest))
        .routes(routes!(stop::stop_copilot_run))
        .routes(routes!(threads::list_copilot_threads))
        .routes(routes!(socket::subscribe))
        .routes(routes!(threads::edit_copilot_thread, threads::delete_copilot_thread))
        .routes(routes!(threads::archive_copilot_thread))
        .routes(routes!(inspect::read_copilot_messages))
        .routes(routes!(inspect::read_copilot_state))
        .routes(routes!(inspect::read_copilot_events))
        .layer(Extension(tokens.clone()));
    let envelopes = OpenApiRouter::new()
        .routes(at(prefix, routes!(envelope::send_envelope)))
        .routes(at(&format!("{prefix}/"), routes!(envelope::send_envelope)))
        .layer(Extension(Arc::new(EnvelopeRoutes::new(
            routes.clone().merge(speech.clone()).into(),
        ))));
    let routes = OpenApiRouter::new().nest(prefix, routes).merge(envelopes);
    let speech = OpenApiRouter::new().nest(prefix, speech);
    vec![
        RouteSet::new(COPILOTKIT, RouteAccess::Authenticated, routes).listing_only(prefix),
        RouteSet::new(COPILOTKIT, RouteAccess::ChecksItself, speech).listing_only(prefix),
        socket::route_set(COPILOTKIT, prefix, tokens),
    ]
}

/// Runs an agent.
#[utoipa::path(
    post,
    path = "/agent/{agent}/run",
    params(LastEventId),
    request_body = RunAgentInput,
    responses(
        response::EventResponse, response::CaughtUp, refuse::Agent, refuse::Body, refuse::Follow, refuse::Limits,
        refuse::Parameter, refuse::Start, refuse::Store,
    ),
)]
async fn run_copilot_agent(
    State(app): State<App>,
    Path(agent): Path<String>,
    request: Request,
) -> ApiResult {
    let on_disconnect = app.options.copilotkit.on_disconnect;
    run_or_reconnect(&app, find_agent(&app, &agent)?, Some(on_disconnect), request).await
}

/// Runs an agent beside the thread.
#[utoipa::path(
    post,
    path = "/agent/{agent}/suggest",
    request_body = RunAgentInput,
    responses(response::EventResponse, refuse::Agent, refuse::Body, refuse::Limits, refuse::Start, refuse::Store)
)]
pub(super) async fn suggest(
    State(app): State<App>,
    Path(agent): Path<String>,
    request: Request,
) -> ApiResult {
    let read = read_input(&app, find_agent(&app, &agent)?, request).await?;
    Ok(respond_run(&app, app.runs.start_beside_thread(read.run)?, read.encoder).await)
}
