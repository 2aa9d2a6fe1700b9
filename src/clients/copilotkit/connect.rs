//! `POST /agent/{agent}/connect`: restates a thread run by run and follows its running run, for a page that is opened or reloaded.
//! The stream is empty for a thread that does not exist: a new page asks for the thread id that it has just generated.
//! CopilotKit's own runtime does the same.

use axum::{
    Extension,
    body::Body,
    extract::{Request, State},
};
use serde::Deserialize;
use utoipa::ToSchema;

use super::{CopilotKit, agents::find_agent, restate::restate};
use crate::http::{
    ApiResult, App, Caller, ClientEncoder, Path, client::ClientSigns, read_body, refuse, response,
    sse_response,
};
use agui_protocol::{ThreadId, decode::decode_members};

/// The part of a `RunAgentInput` that is used.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct CopilotConnectInput {
    thread_id: ThreadId,
    /// Clients before AG-UI 1.0 send none.
    protocol_version: Option<String>,
}

/// Streams a thread and its running run.
#[utoipa::path(
    post,
    path = "/agent/{agent}/connect",
    request_body = CopilotConnectInput,
    responses(response::EventResponse, refuse::Agent, refuse::ResponseMemory, refuse::Body, refuse::Store, refuse::Followers)
)]
pub(super) async fn connect_copilot_thread(
    State(app): State<App>,
    Path(agent): Path<String>,
    Extension(caller): Extension<Caller>,
    request: Request,
) -> ApiResult {
    let agent = find_agent(&app, &agent)?;
    let (head, body) = request.into_parts();
    let body = read_body::read(&app, &head, body).await?;
    let input: CopilotConnectInput = decode_members(&body)?;
    drop(body);
    let CopilotConnectInput { thread_id, protocol_version } = input;
    let signs = ClientSigns {
        of_route: Some(&CopilotKit),
        protocol_version: protocol_version.as_deref(),
        agent: Some(agent.name()),
        ..ClientSigns::of_headers(&head.headers)
    };
    let encoder = ClientEncoder::for_client(&app, &caller, &signs).await;
    let key = caller.key(thread_id);
    let permit = app.response_permit(&key).await?;
    let connection = app.threads.connect(&key, app.options.copilotkit.restated_runs).await?;
    let Some(view) = &connection.view else {
        return Ok(sse_response::respond(encoder.media_type(), Body::empty()));
    };
    let restated = restate(view, connection.running.as_ref().map(|follower| &follower.run_id));
    Ok(restated.respond(&app, connection, encoder, caller.principal, permit))
}
