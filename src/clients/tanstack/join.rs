//! `GET /send-message` and the agents' other paths, as TanStack AI's client calls them: `?runId=…&offset=-1` joins a
//! detached run, `?threadId=…` returns a thread for a page that was opened or reloaded.

use axum::{Extension, Json, extract::State, http::HeaderMap, response::IntoResponse as _};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, OpenApi, ToSchema};

use super::{
    client::TanStack,
    encoder::bind,
    ui_message::{UiMessage, ui_messages},
};
use crate::http::{
    ApiError, ApiResult, App, Caller, ClientEncoder, ClientFiles, Path, Query,
    client::ClientSigns,
    follow::{LastEventId, event_number, follow_after},
    read_run::find_agent,
    refuse, response,
    threads::pages::page_size,
};
use agui_protocol::{Interrupt, Message, Role, RunId, ThreadId};
use agui_run::threads::{MessageList, ThreadError, ThreadOverview, Threads};
use agui_store::ThreadKey;

/// The number of messages without `limit`: more than a thread can have (`[threads] max_messages`). TanStack's client sends a
/// `limit` only if its page loads earlier messages (`history.pageSize`); other pages show what they get at first.
const ALL_MESSAGES: usize = 1 << 30;
/// The largest number of messages that are read at once to complete a page.
const MAX_MESSAGES_PER_READ: usize = 100;
/// The offset before the first event of a run.
const START_OFFSET: &str = "-1";

#[derive(Deserialize, IntoParams)]
#[serde(rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
pub(crate) struct JoinQuery {
    /// The run to join.
    #[param(value_type = Option<String>)]
    run_id: Option<RunId>,
    /// The thread to return, or the thread of the run.
    #[param(value_type = Option<String>)]
    thread_id: Option<ThreadId>,
    /// With `runId`: the number of the last event that the client has; -1 for none.
    #[param(value_type = Option<i64>)]
    offset: Option<String>,
    /// About how many messages. All by default.
    #[param(value_type = Option<u32>, minimum = 1, maximum = 200)]
    limit: Option<String>,
    /// The `cursor` of the page that follows.
    before: Option<String>,
}

/// The schemas of the responses, which `JoinResponse` names.
#[derive(OpenApi)]
#[openapi(components(schemas(JoinedThread<'static>)))]
pub(crate) struct JoinSchemas;

/// A thread, without the messages of its running run.
#[derive(Default, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct JoinedThread<'a> {
    messages: Vec<UiMessage<'a>>,
    /// The running run, if it is detached and so can be joined.
    #[schema(required)]
    active_run: Option<ActiveRun<'a>>,
    #[schema(required)]
    interrupts: Option<OpenInterrupts<'a>>,
    page: PageEnd,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct ActiveRun<'a> {
    run_id: &'a RunId,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct OpenInterrupts<'a> {
    run_id: &'a RunId,
    pending: Vec<Interrupt>,
}

#[derive(Default, Serialize, ToSchema)]
struct PageEnd {
    /// True if the thread has earlier messages.
    truncated: bool,
    /// The `before` of the page with the earlier messages.
    #[serde(skip_serializing_if = "Option::is_none")]
    cursor: Option<String>,
}

/// [`join_agent`] at a path without the name of an agent.
pub(crate) async fn join_default_agent(
    State(app): State<App>,
    Query(query): Query<JoinQuery>,
    Extension(caller): Extension<Caller>,
    last: LastEventId,
) -> ApiResult {
    join(&app, &caller, query, last).await
}

/// Joins a detached run, or returns a thread.
///
/// For pages with TanStack AI: `runId` joins a run, `threadId` alone returns a thread.
#[utoipa::path(
    get,
    path = "/agents/{agent}/send-message",
    params(JoinQuery, LastEventId),
    responses(
        response::JoinResponse,
        refuse::Agent,
        refuse::ResponseMemory,
        refuse::Follow,
        refuse::Parameter,
        refuse::Store,
        refuse::Url
    )
)]
pub(crate) async fn join_agent(
    State(app): State<App>,
    Path(agent): Path<String>,
    Query(query): Query<JoinQuery>,
    Extension(caller): Extension<Caller>,
    last: LastEventId,
) -> ApiResult {
    find_agent(&app, Some(&agent))?;
    join(&app, &caller, query, last).await
}

async fn join(
    app: &App,
    caller: &Caller,
    query: JoinQuery,
    LastEventId(last): LastEventId,
) -> ApiResult {
    let threads = &app.threads;
    let Some(run) = &query.run_id else { return hydrate(app, threads, caller, query).await };
    // A reconnecting client adds the last event to the offset that it began with.
    let after = match (last, query.offset.as_deref()) {
        (Some(number), _) => number,
        (None, None | Some(START_OFFSET)) => 0,
        (None, Some(offset)) => event_number("offset", offset)?,
    };
    let thread = match query.thread_id {
        Some(thread) => thread,
        None => threads.thread_of_run(&caller.owner(), run).await?,
    };
    let headers = HeaderMap::new();
    let signs = ClientSigns { of_route: Some(&TanStack), ..ClientSigns::of_headers(&headers) };
    let encoder = ClientEncoder::for_client(app, caller, &signs).await;
    follow_after(app, caller, thread, run, after, encoder).await
}

async fn hydrate(app: &App, threads: &Threads, caller: &Caller, query: JoinQuery) -> ApiResult {
    let expected = "the id of a thread, or `runId` of a run; POST starts a run";
    let key = caller
        .key(query.thread_id.ok_or(ApiError::InvalidParameter { name: "threadId", expected })?);
    let before = query.before.map(|before| before.parse()).transpose();
    let before = before.map_err(|_| ApiError::InvalidParameter {
        name: "before",
        expected: "the `cursor` of another page",
    })?;
    let limit = match query.limit.as_deref() {
        None if before.is_none() => ALL_MESSAGES,
        limit => page_size(limit)?,
    };
    threads.wait_for_leaving(&key).await;
    let permit = app.response_permit(&key).await?;
    let ThreadOverview { thread, runs, messages, .. } =
        match threads.overview(&key, 1, before, limit).await {
            Ok(overview) => overview,
            // A page asks for the thread that it is about to begin.
            Err(ThreadError::NoThread) => return Ok(Json(JoinedThread::default()).into_response()),
            Err(error) => return Err(error.into()),
        };
    let mut pages = whole_turns(threads, &key, messages).await?;
    if let Some(files) = ClientFiles::for_caller(app, caller).await {
        files.urls().present(pages.iter_mut().flat_map(|page| &mut page.messages));
    }
    let running = runs.first().filter(|run| thread.is_running && run.detached);
    let before = pages.last().and_then(|earliest| earliest.before);
    let asking_run = threads.asking_run(&thread).await?;
    let calls = pages.iter().flat_map(|page| &page.messages).flat_map(Message::tool_calls);
    let mut pending = thread.interrupts;
    for interrupt in &mut pending {
        bind(interrupt, |id| calls.clone().find(|call| call.id == *id).map(|call| &call.function));
    }
    let hydration = JoinedThread {
        messages: ui_messages(pages.iter().rev().flat_map(|page| &page.messages)),
        active_run: running.map(|run| ActiveRun { run_id: &run.id }),
        interrupts: asking_run.as_ref().map(|run_id| OpenInterrupts { run_id, pending }),
        page: PageEnd {
            truncated: before.is_some(),
            cursor: before.map(|before| before.to_string()),
        },
    };
    permit.json(&hydration)
}

/// Adds earlier pages until the first message is the user's, or an instruction: the parts of an answer are not separated.
/// Returns the pages, the latest first.
async fn whole_turns(
    threads: &Threads,
    key: &ThreadKey,
    last: MessageList,
) -> ApiResult<Vec<MessageList>> {
    let begins_turn =
        |message: &Message| matches!(message.role(), Role::User | Role::System | Role::Developer);
    let (mut pages, mut limit) = (vec![last], 1);
    while let Some(earliest) =
        pages.last().filter(|page| !page.messages.first().is_some_and(begins_turn))
        && let Some(before) = earliest.before
    {
        pages.push(threads.messages(key, Some(before), None, limit).await?);
        // Few reads for a long answer, and few messages beyond a short one.
        limit = MAX_MESSAGES_PER_READ.min(2 * limit);
    }
    Ok(pages)
}
