//! `POST /agent/chat/stream` and `POST /agent/agent/stream`: the guide's dialect of the same runs.
//!
//! A client sends new messages, or all of them, and the thread they belong to. When the thread has open interrupts, the
//! newest message is the answer to them, and goes to the agent that raised them, on either route.

use axum::{
    Extension,
    extract::{Request, State},
    response::Response,
};
use serde_json::Value;

use super::{
    App,
    error::ApiError,
    middleware::Caller,
    read_body::{self, Limits},
    send_message::{forwarded, require_json},
    sse_response::respond_run,
};
use crate::{
    encode::{Encoder, Guide},
    protocol::{
        Interrupt, ResumeStatus, ThreadId,
        guide::{ChatRequest, Fault, MessageBody, answers},
    },
    run::{AgentEntry, LookupError, RunRequest, Threads, has_expired},
};

/// The agents behind the guide's routes, by name; `None` is the default one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GuideAgents {
    /// Behind `/agent/chat/stream`.
    pub chat: Option<String>,
    /// Behind `/agent/agent/stream`.
    pub agent: Option<String>,
}

/// Runs the agent for conversations.
pub(super) async fn chat(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    request: Request,
) -> Result<Response, ApiError> {
    let name = app.options().guide.as_ref().and_then(|agents| agents.chat.clone());
    run(&app, name.as_deref(), caller, request).await
}

/// Runs the agent with tools.
pub(super) async fn agent(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    request: Request,
) -> Result<Response, ApiError> {
    let name = app.options().guide.as_ref().and_then(|agents| agents.agent.clone());
    run(&app, name.as_deref(), caller, request).await
}

async fn run(app: &App, name: Option<&str>, caller: Caller, request: Request) -> Result<Response, ApiError> {
    let threads = app.threads().ok_or_else(ApiError::internal)?;
    let agent = app.runs().agent(name).ok_or_else(|| match name {
        Some(name) => ApiError::unknown_agent(name),
        None => ApiError::no_default_agent(),
    })?;
    let (head, body) = request.into_parts();
    require_json(&head.headers)?;
    // As for any run: the right to it also bounds how many bodies are in memory.
    let slot = app.runs().reserve(caller.principal().as_ref())?;
    let options = app.options();
    let body = read_body::read(body, Limits::of(options, &head.headers)).await?;
    let body: Value = serde_json::from_slice(&body).map_err(|error| ApiError::invalid_json(&error))?;
    let request = ChatRequest::read(&body)?;
    drop(body);
    let principal = caller.principal();
    let (thread_id, open, agent) = match &request.thread_id {
        Some(id) => {
            let id = ThreadId::from(id.as_str());
            let (open, agent) = asked(app, threads, &caller, &id, agent).await?;
            (id, open, agent)
        }
        None => (ThreadId::from(format!("thread-{}", uuid::Uuid::new_v4().simple())), Vec::new(), agent),
    };
    let answer = request.newest().filter(|newest| !open.is_empty() || is_decision(&newest.content));
    let path = format!("messages[{}].content", request.messages.len().saturating_sub(1));
    let resume = answer.map(|answer| answers(&open, &answer.content, &path)).transpose()?;
    let mut input = request.to_input(thread_id.clone(), resume.is_some())?;
    input.resume = resume.unwrap_or_default();
    // The dialect has no word for giving a question up. What can no longer be answered is given up by any answer:
    // otherwise the thread would wait for ever.
    for entry in &mut input.resume {
        if open.iter().any(|interrupt| interrupt.id == entry.interrupt_id && has_expired(interrupt)) {
            (entry.status, entry.payload) = (ResumeStatus::Cancelled, None);
        }
    }
    let forwarded = forwarded(options, &head.headers);
    let encoder = Encoder::Guide(Box::new(Guide::new(thread_id, agent.name())));
    let request = RunRequest { slot, agent, input, principal, forwarded, on_disconnect: None };
    Ok(respond_run(app, app.runs().start(request).await?, encoder).await)
}

/// What a thread waits for, and who answers: the agent that asked, if it is still there.
async fn asked(
    app: &App,
    threads: &Threads,
    caller: &Caller,
    id: &ThreadId,
    agent: AgentEntry,
) -> Result<(Vec<Interrupt>, AgentEntry), ApiError> {
    let thread = match threads.thread(caller.principal().as_ref(), id).await {
        Ok(thread) => thread,
        // The thread may be new.
        Err(LookupError::NoThread) => return Ok((Vec::new(), agent)),
        Err(error) => return Err(error.into()),
    };
    let open = thread.interrupts;
    let asked = (!open.is_empty()).then(|| app.runs().agent(Some(&thread.agent))).flatten();
    Ok((open, asked.unwrap_or(agent)))
}

/// Decisions are answers also when nothing is open any more: the response to them may have been lost.
fn is_decision(content: &MessageBody) -> bool {
    matches!(content, MessageBody::Decisions(_))
}

impl From<Fault> for ApiError {
    fn from(fault: Fault) -> Self {
        Self::invalid_input(&fault.path, &fault.expected)
    }
}
