//! The routes below the prefix: a run, its stream for a page that is opened again, the stored
//! messages, and the stop, which the page asks for beside closing its connection.

use std::num::NonZeroUsize;

use axum::{
    Extension, Json,
    body::Body,
    extract::{Request, State},
    http::{HeaderName, HeaderValue, StatusCode, header},
    response::{IntoResponse as _, Response},
};
use futures::{FutureExt as _, future::ready};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    encoder::AiSdkEncoder,
    request::{ChatBody, ChatRun},
    stored::{RestatedMessage, shown_messages},
};
use crate::http::{
    ApiError, ApiResult, App, Caller, ClientEncoder, OwnThreads, Path, RefusalForm, RouteAccess,
    RouteSet, Tag,
    client_options::AiSdkOptions,
    connect::RestatedThread,
    read_run::{find_agent, read_run},
    refusal_response::RefusalMessage,
    refuse,
    run_response::respond_run,
};
use agui_agent::host::owner_of;
use agui_protocol::{ThreadId, encode::Encoder};
use agui_run::{host::RunRequest, threads::ThreadError};
use agui_store::{Thread, ThreadKey};

const AI_SDK: Tag = ("AI SDK", "Runs and threads for pages with the AI SDK.");
/// Names the format of the stream.
const STREAM_VERSION: (HeaderName, HeaderValue) =
    (HeaderName::from_static("x-vercel-ai-ui-message-stream"), HeaderValue::from_static("v1"));
/// The hook shows the body of a refusal to the person.
const REFUSALS: RefusalForm =
    RefusalForm { schema: None, rewrite: |response| ready(in_text(response)).boxed() };
/// The name of the server's default agent, unless an agent has that name.
const DEFAULT_AGENT: &str = "default";

/// Returns the routes. `GET /` names only the one that starts a run, which is what a page needs.
pub(crate) fn route_set(options: &AiSdkOptions) -> Option<RouteSet> {
    let routes = || {
        OpenApiRouter::new()
            .routes(routes!(run_chat))
            .routes(routes!(read_chat))
            .routes(routes!(resume_chat))
            .routes(routes!(stop_chat))
    };
    let routes = options.enabled.then(routes)?;
    let routes = OpenApiRouter::new().nest(&options.prefix, routes);
    let listed = format!("{}/{{agent}}", options.prefix);
    let set = RouteSet::new(AI_SDK, RouteAccess::Authenticated, routes);
    Some(set.listing_only(&listed).refusing_as(REFUSALS))
}

#[derive(Serialize, ToSchema)]
struct AiSdkStopResult {
    stopped: bool,
}

/// Runs an agent.
#[utoipa::path(
    post,
    path = "/{agent}",
    request_body = ChatBody,
    responses(
        (status = 200, description = "The chunks of a UI message stream, and `[DONE]`.", body = Value, content_type = "text/event-stream"),
        refuse::Agent, refuse::Body, refuse::Limits, refuse::Start, refuse::Store,
    ),
)]
async fn run_chat(
    State(app): State<App>,
    Path(agent): Path<String>,
    request: Request,
) -> ApiResult {
    let agent = find_agent(&app, named(&app, &agent))?;
    // The values of such a request are not told apart: all count as open.
    let (read, body) =
        read_run(&app, request, |body| Ok((ChatBody::read(body)?, usize::MAX))).await?;
    let key = ThreadKey { owner: owner_of(read.principal.as_ref()), id: body.id.clone() };
    let open = match body.may_reply() {
        true => stored_thread(&app, &key).await?.map(|thread| thread.interrupts),
        false => None,
    };
    let regenerates = body.regenerates();
    let ChatRun { input, encoder } = body.into_request(agent.name(), &open.unwrap_or_default())?;
    let encoder =
        ClientEncoder::new(&app, read.caller()?, Encoder::Dialect(Box::new(encoder))).await;
    let (wishes, is_reply) = (app.clients.read(&input)?, !input.resume.is_empty());
    let request = RunRequest {
        is_reply,
        regenerates,
        default_on_disconnect: Some(app.options.ai_sdk.on_disconnect),
        ..read.into_request(&app, agent, input, &wishes)?
    };
    Ok(as_stream(respond_run(&app, app.runs.start(request).await?, encoder).await))
}

/// Returns the messages of a thread.
///
/// A thread that does not exist has none: a page asks for the one that it is about to begin.
#[utoipa::path(
    get,
    path = "/{agent}/{thread}",
    responses(
        (status = 200, description = "The messages, without those of the running run.", body = Vec<RestatedMessage>),
        refuse::Agent, refuse::ResponseMemory, refuse::Store,
    ),
)]
async fn read_chat(
    State(app): State<App>,
    Path((agent, thread)): Path<(String, ThreadId)>,
    own: OwnThreads,
) -> ApiResult {
    find_agent(&app, named(&app, &agent))?;
    let key = own.caller.key(thread);
    own.threads.wait_for_leaving(&key).await;
    let permit = app.response_permit(&key).await?;
    let mut view = match own.threads.read(&key).await {
        Ok(view) => view,
        Err(ThreadError::NoThread) => {
            return Ok(Json(Vec::<RestatedMessage>::new()).into_response());
        }
        Err(error) => return Err(error.into()),
    };
    own.present(view.nodes.iter_mut().map(|node| &mut node.message));
    permit.json(&shown_messages(&view.current_branch(), &view.thread.interrupts))
}

/// Streams the running run of a thread.
///
/// The stream begins with the start of the page's message, also if an earlier run began it.
#[utoipa::path(
    get,
    path = "/{agent}/{thread}/stream",
    responses(
        (status = 200, description = "The chunks of a UI message stream, and `[DONE]`.", body = Value, content_type = "text/event-stream"),
        (status = 204, description = "No run is running that continues without its page."),
        refuse::Agent, refuse::ResponseMemory, refuse::Store, refuse::Followers,
    ),
)]
async fn resume_chat(
    State(app): State<App>,
    Path((agent, thread)): Path<(String, ThreadId)>,
    Extension(caller): Extension<Caller>,
) -> ApiResult {
    find_agent(&app, named(&app, &agent))?;
    let key = caller.key(thread);
    if !stored_thread(&app, &key).await?.is_some_and(|thread| thread.is_running) {
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    let permit = app.response_permit(&key).await?;
    let connection = app.threads.connect(&key, NonZeroUsize::MIN).await?;
    if connection.running.is_none() {
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    let encoder = Encoder::Dialect(Box::new(AiSdkEncoder::default()));
    let encoder = ClientEncoder::new(&app, &caller, encoder).await;
    let restated = RestatedThread::new(key.id, &connection, None);
    Ok(as_stream(restated.respond(&app, connection, encoder, caller.principal, permit)))
}

/// Cancels the running run of a thread.
#[utoipa::path(
    post,
    path = "/{agent}/{thread}/stop",
    responses(
        (status = 200, description = "Whether a run is being cancelled.", body = AiSdkStopResult),
        refuse::Agent, refuse::Store, refuse::Thread, refuse::Run,
    ),
)]
async fn stop_chat(
    State(app): State<App>,
    Path((agent, thread)): Path<(String, ThreadId)>,
    Extension(caller): Extension<Caller>,
) -> ApiResult<Json<AiSdkStopResult>> {
    find_agent(&app, named(&app, &agent))?;
    let key = caller.key(thread);
    let running = stored_thread(&app, &key).await?.filter(|thread| thread.is_running);
    let stopped = match running {
        Some(thread) => app.threads.cancel(&key, &thread.run_id).await?.is_none(),
        None => false,
    };
    Ok(Json(AiSdkStopResult { stopped }))
}

fn named<'a>(app: &App, agent: &'a str) -> Option<&'a str> {
    Some(agent).filter(|name| *name != DEFAULT_AGENT || app.runs.agent(Some(name)).is_some())
}

async fn stored_thread(app: &App, key: &ThreadKey) -> ApiResult<Option<Thread>> {
    match app.threads.thread(key).await {
        Ok(thread) => Ok(Some(thread)),
        Err(ThreadError::NoThread) => Ok(None),
        Err(error) => Err(ApiError::from(error)),
    }
}

/// Makes the message of a refusal its body.
fn in_text(mut response: Response) -> Response {
    let Some(RefusalMessage(message)) = response.extensions_mut().remove() else { return response };
    let headers = response.headers_mut();
    headers.remove(header::CONTENT_LENGTH);
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response.map(|_| Body::from(message))
}

fn as_stream(mut response: Response) -> Response {
    let (name, value) = STREAM_VERSION;
    response.headers_mut().insert(name, value);
    response
}
