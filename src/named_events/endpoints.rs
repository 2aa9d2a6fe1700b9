//! The two routes: a named-event request becomes a run. If the thread has open interrupts, the newest message of the
//! request answers them, and the answer goes to the agent that raised them, on either route.

use axum::{
    Extension, Router,
    extract::{Request, State},
    response::Response,
    routing::{MethodRouter, post},
};
use serde_json::Value;

use super::{ChatRequest, InvalidRequest, MessageBody, NamedEventEncoder, NamedEventOptions, answers::resume_entries};
use crate::{
    encode::Encoder,
    http::{
        App,
        error::ApiError,
        middleware::Caller,
        read_body::{self, Limits},
        run_response::respond_run,
        send_message::{forwarded, require_json},
    },
    protocol::{Interrupt, ResumeStatus, ThreadId},
    run::{AgentEntry, LookupError, RunRequest, Threads, has_expired},
};

pub(crate) fn routes(options: &NamedEventOptions, app: &App) -> Router<App> {
    if !options.enabled || app.threads().is_none() {
        return Router::new();
    }
    Router::new()
        .route("/agent/chat/stream", endpoint(options.chat.clone()))
        .route("/agent/agent/stream", endpoint(options.agent.clone()))
}

fn endpoint(agent: Option<String>) -> MethodRouter<App> {
    post(async move |State(app): State<App>, Extension(caller): Extension<Caller>, request: Request| {
        run(&app, agent.as_deref(), caller, request).await
    })
}

async fn run(app: &App, agent: Option<&str>, caller: Caller, request: Request) -> Result<Response, ApiError> {
    let threads = app.threads().ok_or_else(ApiError::internal)?;
    let agent = app.runs().agent(agent).ok_or_else(|| match agent {
        Some(name) => ApiError::unknown_agent(name, app.runs()),
        None => ApiError::no_default_agent(),
    })?;
    let (head, body) = request.into_parts();
    require_json(&head.headers)?;
    let principal = caller.principal();
    // The slot is taken before the body is read, because slots also bound how many bodies are in memory.
    let slot = app.runs().reserve(principal.as_ref())?;
    let body = read_body::read(body, Limits::of(app.options(), &head.headers)).await?;
    let body: Value = serde_json::from_slice(&body).map_err(|error| ApiError::invalid_json(&error))?;
    let request = ChatRequest::read(&body)?;
    drop(body);
    let (thread_id, open, agent) = match &request.thread_id {
        Some(id) => {
            let id = ThreadId::from(id.as_str());
            let (open, agent) = open_interrupts(app, threads, &caller, &id, agent).await?;
            (id, open, agent)
        }
        None => (ThreadId::from(format!("thread-{}", uuid::Uuid::new_v4().simple())), Vec::new(), agent),
    };
    // Decisions are answers even if no interrupt is open: the response to their first request may have been lost.
    let is_answer = |content: &MessageBody| !open.is_empty() || matches!(content, MessageBody::Decisions(_));
    let answer = request.newest_user_message().filter(|newest| is_answer(&newest.content));
    let path = format!("messages[{}].content", request.messages.len().saturating_sub(1));
    let resume = answer.map(|answer| resume_entries(&open, &answer.content, &path)).transpose()?;
    let mut input = request.to_input(thread_id.clone(), resume.is_some())?;
    input.resume = resume.unwrap_or_default();
    // The format cannot express that a person cancels an interrupt. Without this rule, an expired interrupt, which can
    // only be cancelled, would block its thread for ever.
    for entry in &mut input.resume {
        if open.iter().any(|interrupt| interrupt.id == entry.interrupt_id && has_expired(interrupt)) {
            (entry.status, entry.payload) = (ResumeStatus::Cancelled, None);
        }
    }
    let forwarded = forwarded(app.options(), &head.headers);
    let encoder = Encoder::Dialect(Box::new(NamedEventEncoder::new(thread_id, agent.name())));
    let request = RunRequest { slot, agent, input, principal, forwarded, on_disconnect: None };
    Ok(respond_run(app, app.runs().start(request).await?, encoder).await)
}

/// The returned agent is the one that raised the interrupts if it is still served, otherwise the route's.
async fn open_interrupts(
    app: &App,
    threads: &Threads,
    caller: &Caller,
    id: &ThreadId,
    agent: AgentEntry,
) -> Result<(Vec<Interrupt>, AgentEntry), ApiError> {
    let thread = match threads.thread(caller.principal().as_ref(), id).await {
        Ok(thread) => thread,
        // The request begins the thread.
        Err(LookupError::NoThread) => return Ok((Vec::new(), agent)),
        Err(error) => return Err(error.into()),
    };
    let open = thread.interrupts;
    let raised_by = (!open.is_empty()).then(|| app.runs().agent(Some(&thread.agent))).flatten();
    Ok((open, raised_by.unwrap_or(agent)))
}

impl From<InvalidRequest> for ApiError {
    fn from(error: InvalidRequest) -> Self {
        Self::invalid_input(&error.path, &error.expected)
    }
}
