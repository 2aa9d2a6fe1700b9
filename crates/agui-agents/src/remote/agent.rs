//! The agent: reads the endpoint's events, and decides how the run ends.

use std::{fmt, sync::Arc, time::Duration};

use futures::StreamExt as _;
use smart_default::SmartDefault;
use tokio::time::{Instant, timeout, timeout_at};
use tracing::Instrument as _;

use super::{
    mender::Mender,
    on_interrupt,
    options::RemoteOptions,
    reader::Reader,
    request::{Endpoint, broken_stream, incomplete, malformed_event},
    resume::RunStream,
    withdrawn::mark_of,
};
use agui_agent::{Agent, AgentError, EventStream, RunContext, event_stream};
use agui_base::{InvalidOption, RunErrorCode, text::short_name, upstream::events::ServerEvents};
use agui_protocol::{
    AgentCapabilities, Event, RunAgentInput,
    capabilities::IdentityCapabilities,
    event::{RunError, RunStarted},
    host::{VersionSupport, classify_version},
};

const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);
/// The time limit between the end of a run with another id and the beginning of the requested one.
const NEXT_RUN_TIMEOUT: Duration = Duration::from_secs(10);
/// The time limit for a failure after the `RUN_FINISHED` of the requested run. An endpoint that does not end its response
/// delays the end of each run by this time.
const LATE_FAILURE_TIMEOUT: Duration = Duration::from_millis(250);
const MAX_LATE_EVENTS: usize = 100;

/// An agent that forwards runs to another AG-UI endpoint.
///
/// ```
/// use agui_agents::{Remote, RemoteOptions};
///
/// let remote = Remote::new(RemoteOptions::new("http://localhost:8000/agent"))?;
/// # Ok::<(), agui_base::InvalidOption>(())
/// ```
pub struct Remote {
    endpoint: Arc<Endpoint>,
    description: Option<String>,
}

impl Remote {
    /// Makes an agent. Reads the environment variables that the options name; makes no request.
    ///
    /// # Errors
    /// [`InvalidOption`], if an option is wrong or TLS cannot be set up.
    pub fn new(options: RemoteOptions) -> Result<Self, InvalidOption> {
        let endpoint = Arc::new(Endpoint::new(&options)?);
        Ok(Self { endpoint, description: options.description })
    }
}

impl fmt::Debug for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Remote").field("url", &self.endpoint.url.as_str()).finish_non_exhaustive()
    }
}

impl Agent for Remote {
    fn run(&self, input: RunAgentInput, cx: RunContext) -> EventStream {
        let endpoint = self.endpoint.clone();
        event_stream(async_stream::try_stream! {
            let retracted = cx.continuation().map(|run| run.retracted.clone()).unwrap_or_default();
            let mut mender = Mender::new(&input, retracted);
            let (url, passes_raw) = (endpoint.url.to_string(), endpoint.passes_raw);
            let mut questions = Vec::new();
            let mut frames = RunStream::open(endpoint, input, cx.clone()).await?;
            mender.set_conversation(mark_of(&url, &frames.input().thread_id));
            let mut reader = Reader::default();
            let mut runs = StreamedRuns::default();
            let ending = loop {
                let next = match runs.deadline {
                    None => frames.next().await,
                    // An endpoint that sends faster than it is read never waits, so the timeout alone is not enough.
                    Some(deadline) if deadline <= Instant::now() => None,
                    Some(deadline) => timeout_at(deadline, frames.next()).await.unwrap_or(None),
                };
                let frame = match next {
                    Some(Ok(frame)) => frame,
                    _ if runs.ended.is_some() => break runs.ended.take(),
                    Some(Err(fault)) => Err(broken_stream(fault, reader.next_number()))?,
                    None => break None,
                };
                // An event without its empty line at the end of the stream is incomplete and ignored (HTML, 9.2.6).
                if frame.is_cut_off || frame.data.is_empty() {
                    continue;
                }
                let event = match reader.read(&frame.data) {
                    Err(problem) if runs.ended.is_none() => Err(malformed_event(problem))?,
                    read => read.unwrap_or_default(),
                };
                let rests = reader.take_rests().into_iter().filter(|_| runs.ended.is_none());
                let mut events: Vec<_> = rests.flat_map(|rest| mender.mend(rest)).collect();
                if matches!(event, Some(Event::RunStarted(_))) {
                    questions.clear();
                }
                let (event, is_over) = runs.next(event, frames.input());
                events.extend(event.into_iter().flat_map(|event| mender.mend(event)));
                for mut event in events {
                    if let Event::Custom(custom) = &event {
                        questions.extend(on_interrupt::question(custom, &url));
                    }
                    if !passes_raw {
                        if matches!(event, Event::Raw(_)) {
                            continue;
                        }
                        event.base_mut().set_raw_event(None);
                    }
                    let is_closed = frames.passes(&event);
                    yield event;
                    if is_closed {
                        frames.mark();
                    }
                }
                if is_over {
                    break runs.ended.take();
                }
            };
            let ending = ending.ok_or_else(incomplete)?;
            close_in_background(frames.into_rest(), runs.late);
            match ending {
                Event::RunError(error) => Err(run_error(error, &cx))?,
                Event::RunFinished(mut finished) => {
                    on_interrupt::ask(&mut finished, questions);
                    mender.finish(&mut finished);
                    yield Event::RunFinished(finished);
                }
                _ => {}
            }
        })
    }

    /// Forwards the request, because the endpoint has the MCP servers.
    fn respond_to_app(&self, input: RunAgentInput, cx: RunContext) -> EventStream {
        self.run(input, cx)
    }

    /// A run can be continued if the endpoint keeps it.
    fn can_continue(&self) -> bool {
        self.endpoint.is_resumable
    }

    fn is_remote(&self) -> bool {
        true
    }

    fn capabilities(&self) -> AgentCapabilities {
        let described = |description| IdentityCapabilities {
            description: Some(description),
            ..IdentityCapabilities::default()
        };
        AgentCapabilities {
            identity: self.description.clone().map(described),
            ..AgentCapabilities::default()
        }
    }
}

/// The runs of a stream: the requested one, after any number of earlier runs that the endpoint repeats.
///
/// The requested run is recognized by its id. Some endpoints give their runs ids of their own, so
/// the last run of a stream counts as the requested one. The events of all runs are passed on,
/// because messages accumulate over them.
#[derive(SmartDefault)]
struct StreamedRuns {
    is_active: bool,
    #[default(true)]
    is_requested: bool,
    /// The end of the last run, until the next one begins: `RUN_FINISHED` or `RUN_ERROR`.
    ended: Option<Event>,
    /// The end of the wait for events after `ended`.
    deadline: Option<Instant>,
    /// The number of ignored events after the end of a run.
    late: usize,
    is_warned: bool,
}

impl StreamedRuns {
    /// Returns the event to pass on, and whether the stream is read far enough.
    fn next(&mut self, event: Option<Event>, requested: &RunAgentInput) -> (Option<Event>, bool) {
        let ending = match event {
            None if self.ended.is_none() => return (None, false),
            Some(Event::RunStarted(_)) if self.ended.is_some() && self.is_requested => {
                return (None, true);
            }
            Some(Event::RunStarted(started)) => {
                self.begin(&started, requested);
                return (None, false);
            }
            Some(Event::RunFinished(finished)) if self.ended.is_none() => {
                self.is_requested |= finished.run_id == requested.run_id;
                Event::RunFinished(finished)
            }
            // The only event of a run that may follow its end. Without a usage of its own it keeps
            // that of `ended`.
            Some(Event::RunError(mut error)) if !matches!(self.ended, Some(Event::RunError(_))) => {
                if let Some(Event::RunFinished(finished)) = self.ended.take()
                    && error.usage.is_empty()
                {
                    error.usage = finished.usage;
                }
                Event::RunError(error)
            }
            Some(event) if self.ended.is_none() => return (Some(event), false),
            _ => {
                self.late += 1;
                return (None, self.late == MAX_LATE_EVENTS);
            }
        };
        let is_over = self.is_requested && matches!(ending, Event::RunError(_));
        let limit = if self.is_requested { LATE_FAILURE_TIMEOUT } else { NEXT_RUN_TIMEOUT };
        self.deadline = Some(Instant::now() + limit);
        self.ended = Some(ending);
        self.is_active = false;
        (None, is_over)
    }

    /// Logs a run with other ids, which matters when the logs of both servers are compared, and an unknown version.
    fn begin(&mut self, started: &RunStarted, requested: &RunAgentInput) {
        self.ended = None;
        self.deadline = None;
        let is_nested = std::mem::replace(&mut self.is_active, true);
        if is_nested {
            tracing::warn!(
                "the remote agent began a run before the end of another one; both are read as one run"
            );
        }
        self.is_requested = started.run_id == requested.run_id || (is_nested && self.is_requested);
        let has_other_ids = !self.is_requested || started.thread_id != requested.thread_id;
        if has_other_ids && !std::mem::replace(&mut self.is_warned, true) {
            let (thread, run) = (short_name(&started.thread_id), short_name(&started.run_id));
            tracing::warn!(
                ?thread,
                ?run,
                "the remote agent's RUN_STARTED has other ids than this run"
            );
        }
        if let Some(version) = started.protocol_version.as_deref()
            && classify_version(version) != VersionSupport::Supported
        {
            let version = short_name(version);
            tracing::warn!(
                ?version,
                "the remote agent speaks a version of AG-UI that this server does not know"
            );
        }
    }
}

fn run_error(error: RunError, cx: &RunContext) -> AgentError {
    error.usage.into_iter().for_each(|usage| cx.add_usage(usage));
    AgentError::new(error.code.unwrap_or(RunErrorCode::RemoteError.into()), error.message)
}

/// Reads the response to its end in the background. Many endpoints clean up after the last event and treat a closed
/// connection as a client that left; and a connection whose response has ended can be reused.
fn close_in_background(mut frames: ServerEvents, mut late: usize) {
    let closing = async move {
        let reading = async {
            while late < MAX_LATE_EVENTS
                && let Some(Ok(_)) = frames.next().await
            {
                late += 1;
            }
        };
        let closed = timeout(CLOSE_TIMEOUT, reading).await.is_ok();
        if late > 0 {
            tracing::warn!(ignored = late, "the remote agent sent events after the last one");
        }
        if !closed {
            tracing::debug!("the remote agent did not end its response in time");
        }
    };
    tokio::spawn(closing.in_current_span());
}
