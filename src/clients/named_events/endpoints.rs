//! The two routes: a named-event request becomes a run. If the thread has open interrupts, the newest message of the
//! request replies to them, and the reply goes to the agent that raised them, on either route. Decisions on a thread
//! without open interrupts get an `error` event and start no run.

use std::collections::HashMap;

use axum::{
    extract::{Request, State},
    response::Response,
};
use serde_json::json;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    ChatRequest, HitlDecisionType, InvalidRequest, MessageBody, NamedEventEncoder,
    NamedEventOptions, make_event,
    replies::{ReadReply, read_reply},
    schema::NamedEvent,
};
use crate::http::{
    ApiError, ApiResult, App, ClientEncoder, RouteAccess, RouteSet,
    client::Wishes,
    read_run::{find_agent, read_run},
    refuse,
    run_response::respond_run,
    sse_response::respond,
};
use agui_agent::host::{AgentEntry, owner_of};
use agui_protocol::{
    Interrupt, JsonObject, ResumeStatus, ThreadId, ToolCallId,
    decode::decode_value,
    encode::{Encoder, SSE_MEDIA_TYPE},
};
use agui_run::{
    host::{RunRequest, has_expired},
    threads::{ThreadError, Threads},
};
use agui_store::ThreadKey;

pub(crate) fn route_set(options: &NamedEventOptions) -> Option<RouteSet> {
    let routes =
        || OpenApiRouter::new().routes(routes!(run_chat)).routes(routes!(run_named_events));
    let routes = options.enabled.then(routes)?;
    let tag = ("named events", "A second format for the same agents, runs and threads.");
    Some(RouteSet::new(tag, RouteAccess::Authenticated, routes))
}

/// Runs the agent of chats with named events.
///
/// If the thread has open interrupts, the newest message replies to them.
#[utoipa::path(
    post,
    path = "/agent/chat/stream",
    request_body = ChatRequest,
    responses(
        (status = 200, description = "The events of the run. The name of an event is in its line `event:`.", body = NamedEvent, content_type = "text/event-stream"),
        refuse::Agent, refuse::Body, refuse::Limits, refuse::Start, refuse::Store,
    ),
)]
async fn run_chat(State(app): State<App>, request: Request) -> ApiResult {
    run(&app, app.options.named_events.chat.as_deref(), request).await
}

/// Runs an agent with named events.
///
/// If the thread has open interrupts, the newest message replies to them.
#[utoipa::path(
    post,
    path = "/agent/agent/stream",
    request_body = ChatRequest,
    responses(
        (status = 200, description = "The events of the run. The name of an event is in its line `event:`.", body = NamedEvent, content_type = "text/event-stream"),
        refuse::Agent, refuse::Body, refuse::Limits, refuse::Start, refuse::Store,
    ),
)]
async fn run_named_events(State(app): State<App>, request: Request) -> ApiResult {
    run(&app, app.options.named_events.agent.as_deref(), request).await
}

async fn run(app: &App, agent: Option<&str>, request: Request) -> ApiResult {
    let threads = &app.threads;
    let agent = find_agent(app, agent)?;
    // The values of such a request are not told apart: all count as open.
    let (read, request) =
        read_run(app, request, |body| Ok((ChatRequest::read(&decode_value(body)?)?, usize::MAX)))
            .await?;
    let key = |id: ThreadId| ThreadKey { owner: owner_of(read.principal.as_ref()), id };
    let (key, (open, agent)) = match &request.thread_id {
        Some(id) => {
            let key = key(id.as_str().into());
            let open = open_interrupts(app, threads, &key, agent).await?;
            (key, open)
        }
        None => {
            (key(format!("thread-{}", uuid::Uuid::new_v4().simple()).into()), (Vec::new(), agent))
        }
    };
    let newest = request.newest_user_message().map(|newest| &newest.content);
    if let (Some(MessageBody::Decisions(_)), true) = (newest, open.is_empty()) {
        return Ok(nothing_open(&key.id));
    }
    let reply = match newest.filter(|_| !open.is_empty()) {
        Some(reply) => {
            let calls = edited_calls(threads, &key, reply, &open).await?;
            let path = format!("messages[{}].content", request.messages.len() - 1);
            Some(read_reply(&open, reply, &calls, &path)?)
        }
        None => None,
    };
    let is_reply = reply.is_some();
    let mut input = request.to_input(key.id.clone(), is_reply)?;
    let ReadReply { entries, problem } =
        reply.unwrap_or(ReadReply { entries: Vec::new(), problem: None });
    input.resume = entries;
    // The format cannot express that a person cancels an interrupt. Without this rule, an expired interrupt, which can
    // only be cancelled, would block its thread for ever.
    for entry in &mut input.resume {
        if open.iter().any(|interrupt| interrupt.id == entry.interrupt_id && has_expired(interrupt))
        {
            (entry.status, entry.payload) = (ResumeStatus::Cancelled, None);
        }
    }
    let encoder = NamedEventEncoder::new(key.id, agent.name()).with_problem(problem);
    let encoder = Encoder::Dialect(Box::new(encoder));
    let encoder = ClientEncoder::new(app, read.caller()?, encoder).await;
    let request =
        RunRequest { is_reply, ..read.into_request(app, agent, input, &Wishes::default())? };
    Ok(respond_run(app, app.runs.start(request).await?, encoder).await)
}

/// The returned agent is the one that raised the interrupts if it is still served, otherwise the route's.
async fn open_interrupts(
    app: &App,
    threads: &Threads,
    key: &ThreadKey,
    agent: AgentEntry,
) -> ApiResult<(Vec<Interrupt>, AgentEntry)> {
    let thread = match threads.thread(key).await {
        Ok(thread) => thread,
        // The request begins the thread.
        Err(ThreadError::NoThread) => return Ok((Vec::new(), agent)),
        Err(error) => return Err(error.into()),
    };
    let open = thread.interrupts;
    let raised_by = (!open.is_empty()).then(|| app.runs.agent(Some(&thread.agent))).flatten();
    Ok((open, raised_by.unwrap_or(agent)))
}

/// Returns the arguments of the calls that the interrupts are about, if the reply edits some. Only then the thread's
/// messages are read.
async fn edited_calls(
    threads: &Threads,
    key: &ThreadKey,
    reply: &MessageBody,
    open: &[Interrupt],
) -> ApiResult<HashMap<ToolCallId, JsonObject>> {
    let MessageBody::Decisions(decisions) = reply else { return Ok(HashMap::new()) };
    if decisions.iter().all(|decision| decision.kind != HitlDecisionType::Edit) {
        return Ok(HashMap::new());
    }
    let thread = threads.read(key).await?;
    let asked: HashMap<_, _> =
        open.iter().filter_map(|asked| Some((asked.tool_call_id.as_ref()?, asked))).collect();
    let branch = thread.current_branch();
    let calls = branch.iter().flat_map(|message| message.tool_calls());
    let arguments = calls.filter_map(|call| {
        let shown = asked.get(&call.id)?.arguments().cloned();
        Some((
            call.id.clone(),
            shown.or_else(|| serde_json::from_str(&call.function.arguments).ok())?,
        ))
    });
    Ok(arguments.collect())
}

fn nothing_open(thread_id: &ThreadId) -> Response {
    let message = "no question is open on this thread, so the decisions have no effect";
    let payload = json!({ "type": "no_open_question", "message": message, "thread_id": thread_id });
    respond(SSE_MEDIA_TYPE, make_event("error", &payload).into())
}

impl From<InvalidRequest> for ApiError {
    fn from(error: InvalidRequest) -> Self {
        Self::invalid_input(&error.path, &error.expected)
    }
}
