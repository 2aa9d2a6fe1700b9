//! A run as one JSON document in place of a stream, for scripts, jobs and back ends: the response waits for the end of the run, or
//! names the place where the document will be.

use std::{collections::HashSet, future::poll_fn, io};

use async_stream::stream;
use axum::{
    Json,
    body::Body,
    http::{HeaderMap, HeaderName, StatusCode, header},
    response::{IntoResponse as _, Response},
};
use bytes::Bytes;
use futures::{FutureExt as _, Stream, StreamExt as _, stream::BoxStream};
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::{
    accept::media_type::accepted,
    client_encoder::ClientEncoder,
    sse_response::{self, with_timeout},
    state::App,
};
use agui_base::text::{essence, path_segment};
use agui_protocol::{
    Event, Message, MessageId, RunAgentInput, RunId, ThreadId, TokenUsage,
    event::{MessagesSnapshot, RunOutcome},
};
use agui_run::{
    Transcript,
    host::{Drive, Progress, StartedRun, thread_deleted},
    log::{FollowError, Follower},
    threads::Threads,
};
use agui_store::{RunFailure, RunStatus};

const JSON: &str = "application/json";
/// The number of events after which the task yields: an agent may have all of its events ready.
const EVENTS_PER_POLL: usize = 64;

/// The result of a run.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RunDocument {
    pub(crate) thread_id: ThreadId,
    pub(crate) run_id: RunId,
    pub(crate) status: RunStatus,
    /// As `RUN_FINISHED` has it. Absent while the run is running, and if it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) outcome: Option<RunOutcome>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<RunFailure>,
    /// As `RUN_FINISHED` has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) result: Option<Value>,
    /// The messages that the run added.
    pub(crate) messages: Vec<Message>,
    /// The state after the run. Absent if the events of the run do not say it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) state: Option<Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) usage: Vec<TokenUsage>,
}

impl RunDocument {
    /// Creates the document of a run that has not ended.
    pub(crate) fn running(thread_id: ThreadId, run_id: RunId) -> Self {
        Self {
            thread_id,
            run_id,
            status: RunStatus::Running,
            outcome: None,
            error: None,
            result: None,
            messages: Vec::new(),
            state: None,
            usage: Vec::new(),
        }
    }
}

/// True if the client accepts JSON, and nothing else.
pub(super) fn wants_document(headers: &HeaderMap) -> bool {
    let mut types = accepted(headers).flat_map(|value| value.split(',')).map(essence).peekable();
    types.peek().is_some() && types.all(|media_type| media_type == JSON)
}

/// True if the client does not wait for the run (RFC 7240, section 4.1).
pub(super) fn prefers_async(headers: &HeaderMap) -> bool {
    let values = headers.get_all("prefer").iter().filter_map(|value| value.to_str().ok());
    values
        .flat_map(|value| value.split(','))
        .any(|preference| preference.trim().eq_ignore_ascii_case("respond-async"))
}

/// Responds 202, with the URL of the document.
pub(super) fn respond_later(thread_id: ThreadId, run_id: RunId) -> Response {
    let url = format!(
        "/threads/{}/runs/{}",
        path_segment(thread_id.as_str()),
        path_segment(run_id.as_str())
    );
    let headers = [
        (header::LOCATION, url),
        (HeaderName::from_static("preference-applied"), "respond-async".to_owned()),
    ];
    (StatusCode::ACCEPTED, headers, Json(RunDocument::running(thread_id, run_id))).into_response()
}

/// Responds with the document. Until the run ends, silences are filled with line ends, so that no
/// proxy closes the connection.
pub(super) fn respond(
    app: &App,
    started: StartedRun,
    mut reader: DocumentReader,
    client: ClientEncoder,
) -> Response {
    let keep_alive = app.options.keep_alive;
    let threads = app.threads.clone();
    let body = stream! {
        let mut events = events(started, threads);
        let mut read = 0;
        loop {
            match with_timeout(keep_alive, events.next()).await {
                None | Some(Some(Ok(None))) => yield Ok(Bytes::from_static(b"\n")),
                Some(Some(Ok(Some(event)))) => {
                    reader.read(&event);
                    read += 1;
                    if read % EVENTS_PER_POLL == 0 {
                        tokio::task::yield_now().await;
                    }
                }
                Some(Some(Err(error))) => {
                    yield Err(error);
                    return;
                }
                Some(None) => break,
            }
        }
        let mut document = reader.into_document();
        client.present(&mut document.messages);
        yield serde_json::to_vec(&document).map(Bytes::from).map_err(io::Error::from);
    };
    sse_response::respond(JSON, Body::from_stream(body))
}

/// Returns the events of a run; `None` for a silence.
pub(crate) fn events(
    started: StartedRun,
    threads: Threads,
) -> BoxStream<'static, io::Result<Option<Event>>> {
    match started {
        StartedRun::Unstored(run) => polled(run).boxed(),
        StartedRun::Stored(run) => polled(run).boxed(),
        StartedRun::Restated(run) => {
            let events = run.events.into_iter().map(|event| Ok(Some(event)));
            futures::stream::iter(events).boxed()
        }
        StartedRun::Awaited(next) => {
            let next = next.map(|started| match started {
                Ok(started) => events(started, threads),
                Err(_) => futures::stream::iter([Err(sse_response::broken())]).boxed(),
            });
            next.flatten_stream().boxed()
        }
        StartedRun::Detached { mut follower } => stream! {
            loop {
                match next_events(&mut follower).await {
                    Err(FollowError::ThreadDeleted) => {
                        yield Ok(Some(thread_deleted()));
                        return;
                    }
                    // The connection breaks, so the client does not take a part for the whole.
                    Err(_) => yield Err(sse_response::broken()),
                    Ok(None) => break,
                    Ok(Some(events)) => {
                        for event in events {
                            yield Ok(Some(event));
                        }
                    }
                }
            }
            threads.delivered(&follower).await;
        }
        .boxed(),
    }
}

fn polled<R: Drive + Send>(
    mut run: Box<R>,
) -> impl Stream<Item = io::Result<Option<Event>>> + Send {
    stream! {
        let span = run.span().clone();
        let mut events: Vec<Event> = Vec::new();
        loop {
            let progress = poll_fn(|cx| span.in_scope(|| run.poll_progress(cx, &mut events))).await;
            for event in events.drain(..) {
                yield Ok(Some(event));
            }
            match progress {
                Progress::Moved => {}
                Progress::Heartbeat => yield Ok(None),
                Progress::Ended => break,
                Progress::Broken => {
                    yield Err(sse_response::broken());
                    return;
                }
            }
        }
        run.delivered();
    }
}

/// Returns the next events of a log; `None` after the last one.
pub(crate) async fn next_events(
    follower: &mut Follower,
) -> Result<Option<Vec<Event>>, FollowError> {
    let Some(chunk) = follower.next().await? else { return Ok(None) };
    let read = |json: &str| {
        serde_json::from_str(json)
            .inspect_err(|error| tracing::error!(%error, "cannot read an event of a log"))
    };
    let snapshots = follower.take_snapshots();
    let mut events: Vec<_> =
        chunk.events().filter_map(|(_, json)| read(&follower.renamed(json)).ok()).collect();
    let first = events.len().min(1);
    events.splice(first..first, snapshots);
    Ok(Some(events))
}

/// Reads the events of a run into its document.
pub(crate) struct DocumentReader {
    document: RunDocument,
    transcript: Transcript,
    /// The messages that were there before.
    known: HashSet<MessageId>,
    has_state: bool,
}

impl DocumentReader {
    /// Creates the reader for a request: its events begin with the messages that the client lacks.
    pub(super) fn for_input(input: &RunAgentInput) -> Self {
        Self {
            document: RunDocument::running(input.thread_id.clone(), input.run_id.clone()),
            transcript: Transcript::from_input(input),
            known: input.messages.iter().map(|message| message.id().clone()).collect(),
            has_state: true,
        }
    }

    /// Creates the reader for a log.
    pub(crate) fn for_log(thread_id: ThreadId, run_id: RunId) -> Self {
        let document = RunDocument::running(thread_id, run_id);
        Self {
            document,
            transcript: Transcript::new(Vec::new(), json!({})),
            known: HashSet::new(),
            has_state: false,
        }
    }

    pub(crate) fn read(&mut self, event: &Event) {
        match event {
            Event::MessagesSnapshot(snapshot) => self.know(snapshot),
            Event::StateSnapshot(_) => self.has_state = true,
            Event::RunFinished(finished) => {
                let outcome = finished.outcome.clone().unwrap_or(RunOutcome::success());
                self.document.status = match outcome {
                    RunOutcome::Success { .. } => RunStatus::Finished,
                    RunOutcome::Interrupt { .. } => RunStatus::Interrupted,
                    RunOutcome::Cancelled => RunStatus::Cancelled,
                };
                self.document.outcome = Some(outcome);
                self.document.result = finished.result.clone();
                self.document.usage = finished.usage.clone();
            }
            Event::RunError(error) => {
                self.document.status = RunStatus::Failed;
                let code = error.code.as_deref().map(str::to_owned);
                self.document.error = Some(RunFailure { code, message: error.message.clone() });
                self.document.usage = error.usage.clone();
            }
            _ => {}
        }
        self.transcript.apply(event);
    }

    /// A snapshot also has earlier messages: all up to the last known one, or up to the user's last
    /// one.
    fn know(&mut self, snapshot: &MessagesSnapshot) {
        let added: HashSet<_> = self.added().iter().map(|message| message.id().clone()).collect();
        let messages = &snapshot.messages;
        let is_seen =
            |message: &Message| self.known.contains(message.id()) || added.contains(message.id());
        let is_of_user = |message: &Message| matches!(message, Message::User(_));
        let last =
            messages.iter().rposition(is_seen).or_else(|| messages.iter().rposition(is_of_user));
        let before = messages.iter().take(last.map_or(0, |last| last + 1)).map(Message::id);
        self.known.extend(before.filter(|id| !added.contains(*id)).cloned());
    }

    fn added(&self) -> Vec<Message> {
        self.transcript
            .messages()
            .iter()
            .filter(|message| !self.known.contains(message.id()))
            .cloned()
            .collect()
    }

    pub(crate) fn into_document(mut self) -> RunDocument {
        self.document.messages = self.added();
        self.document.state = self.has_state.then(|| self.transcript.state().clone());
        self.document
    }
}
