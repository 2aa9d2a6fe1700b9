//! `POST /threads/{thread}/connect`: snapshots of a thread, then its running run from its first event to its last.
//! Without a running run, the stream ends with the thread's open interrupts, or successfully.

use std::num::NonZeroUsize;

use axum::{
    Extension,
    body::Body,
    extract::{Request, State},
    response::Response,
};
use serde::{Deserialize, de::IgnoredAny};
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::{
    ApiResult, App, Caller, ClientEncoder, Path, client::ClientSigns, follow::FollowedRun,
    read_body, read_run::warn_of_snake_case, refuse, response, response_budget::ResponsePermit,
    sse_response,
};
use agui_agent::{Principal, host::owner_of};
use agui_protocol::{
    Event, Messages, RunAgentInput, RunId, ThreadId,
    event::{MessagesSnapshot, RunFinished, RunOutcome, RunStarted, StateSnapshot},
};
use agui_run::{host::RunRequest, threads::ThreadConnection};
use agui_store::{ThreadKey, ThreadView};

/// The part of a `RunAgentInput` that is read: the id of the run in the events, and the client's version.
#[derive(Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ConnectInput {
    run_id: Option<RunId>,
    #[serde(rename = "run_id")]
    #[schema(ignore)]
    run_id_in_snake_case: Option<RunId>,
    protocol_version: Option<String>,
    #[schema(ignore)]
    forwarded_props: Option<IgnoredAny>,
}

/// This stream skips the run's first event, because it has sent its own.
const RUN_STARTED_NUMBER: u64 = 1;

/// Streams a thread and its running run.
///
/// Snapshots of messages and state come first, then the running detached run from its first event. An unknown
/// thread is treated as an empty one.
#[utoipa::path(
    post,
    path = "/threads/{thread}/connect",
    request_body(content = ConnectInput, description = "May be absent."),
    responses(response::EventResponse, refuse::ResponseMemory, refuse::Body, refuse::Store, refuse::Followers)
)]
pub(crate) async fn connect_thread(
    State(app): State<App>,
    Path(thread): Path<ThreadId>,
    Extension(caller): Extension<Caller>,
    request: Request,
) -> ApiResult {
    let (head, body) = request.into_parts();
    let body = read_body::read(&app, &head, body).await?;
    let input: ConnectInput = read_body::decode_optional(&body)?;
    drop(body);
    if input.run_id.is_none() && input.run_id_in_snake_case.is_some() {
        warn_of_snake_case(1);
    }
    let run_id = input.run_id.or(input.run_id_in_snake_case);
    let key = caller.key(thread);
    let permit = app.response_permit(&key).await?;
    let connection = app.threads.connect(&key, NonZeroUsize::MIN).await?;
    let signs = ClientSigns {
        protocol_version: input.protocol_version.as_deref(),
        run_id: run_id.as_ref(),
        has_forwarded_props: input.forwarded_props.is_some(),
        agent: connection.view.as_ref().map(|view| view.thread.agent.as_str()),
        ..ClientSigns::of_headers(&head.headers)
    };
    let encoder = ClientEncoder::for_client(&app, &caller, &signs).await;
    let restated = RestatedThread::new(key.id, &connection, run_id);
    Ok(restated.respond(&app, connection, encoder, caller.principal, permit))
}

/// Events that give a client a thread. The last run of them has not ended.
pub(crate) struct RestatedThread {
    pub(crate) thread_id: ThreadId,
    pub(crate) run_id: RunId,
    pub(crate) events: Vec<Event>,
}

impl RestatedThread {
    /// Restates a thread as one run. An unknown thread is treated as an empty one.
    pub(crate) fn new(
        thread_id: ThreadId,
        connection: &ThreadConnection,
        run_id: Option<RunId>,
    ) -> Self {
        let followed = connection.running.as_ref().map(|follower| follower.run_id.clone());
        let run_id = followed.or(run_id).unwrap_or_else(RunId::random);
        let events = snapshots(&thread_id, &run_id, connection.view.as_ref());
        Self { thread_id, run_id, events }
    }

    /// Responds with the events and the rest of the last run: the running one, or its end.
    pub(crate) fn respond(
        self,
        app: &App,
        connection: ThreadConnection,
        mut encoder: ClientEncoder,
        caller: Option<Principal>,
        permit: ResponsePermit,
    ) -> Response {
        let Self { thread_id, run_id, mut events } = self;
        let ThreadConnection { view, running } = connection;
        if let Some(follower) = running {
            let (before, skip) = (events, RUN_STARTED_NUMBER);
            return FollowedRun { before, permit, skip, caller, ..FollowedRun::new(follower) }
                .respond(app, encoder);
        }
        let interrupts = view.map(|view| view.thread.interrupts).unwrap_or_default();
        let outcome = if interrupts.is_empty() {
            RunOutcome::success()
        } else {
            RunOutcome::Interrupt { interrupts }
        };
        events.push(RunFinished::new(thread_id, run_id, outcome).into());
        let mut out = Vec::new();
        events.iter().for_each(|event| encoder.event(event, &mut out));
        sse_response::respond(encoder.media_type(), Body::from(permit.bytes(out)))
    }
}

pub(crate) fn snapshots(
    thread_id: &ThreadId,
    run_id: &RunId,
    view: Option<&ThreadView>,
) -> Vec<Event> {
    let messages = view.map(ThreadView::current_branch).unwrap_or_default();
    let state = view
        .and_then(|view| view.thread.state.clone())
        .map_or_else(|| json!({}), |(_, state)| state);
    vec![
        RunStarted::new(thread_id.clone(), run_id.clone()).into(),
        MessagesSnapshot::new(messages.into_iter().cloned().collect::<Messages>()).into(),
        StateSnapshot::new(state).into(),
    ]
}

/// Returns the thread that a request asks for, if it has messages. A request without message, reply
/// and state asks so: pages of some other servers send one.
pub(crate) async fn thread_that_is_asked_for(
    app: &App,
    run: &RunRequest,
) -> ApiResult<Option<(ThreadConnection, ResponsePermit)>> {
    if !asks_nothing(&run.input) {
        return Ok(None);
    }
    let key =
        ThreadKey { owner: owner_of(run.principal.as_ref()), id: run.input.thread_id.clone() };
    let permit = app.response_permit(&key).await?;
    let connection = app.threads.connect(&key, NonZeroUsize::MIN).await?;
    let has_messages =
        connection.view.as_ref().is_some_and(|view| !view.current_branch().is_empty());
    Ok(has_messages.then_some((connection, permit)))
}

fn asks_nothing(input: &RunAgentInput) -> bool {
    let is_empty = |value: &Option<Value>| {
        value.as_ref().is_none_or(|value| value.is_null() || *value == json!({}))
    };
    input.messages.is_empty()
        && input.resume.is_empty()
        && is_empty(&input.state)
        && is_empty(&input.forwarded_props)
}
