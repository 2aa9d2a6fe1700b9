//! The agent: reads the endpoint's events, and decides how the run ends.

use std::{fmt, sync::Arc, time::Duration};

use futures::StreamExt as _;
use tracing::Instrument as _;

use super::{
    error::{RemoteError, broken_stream, incomplete, malformed_event},
    options::RemoteOptions,
    reader::{Decoded, Reader},
    request::Endpoint,
};
use crate::{
    agent::{Agent, AgentError, EventStream, RunContext, event_stream},
    protocol::{
        AgentCapabilities, Event, RunAgentInput, VersionSupport,
        capabilities::IdentityCapabilities,
        classify_version,
        event::{RunError, RunStarted},
    },
    upstream::events::ServerEvents,
};

const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);
const MAX_LATE_EVENTS: usize = 100;
const MAX_LOGGED_CHARS: usize = 80;

/// An agent that forwards runs to another AG-UI endpoint. See the [module](super).
///
/// ```
/// use agui_server::{Server, agents::{Remote, RemoteOptions}};
///
/// let remote = Remote::new(RemoteOptions::new("http://localhost:8000/agent"))?;
/// let server = Server::new().agent("python", remote);
/// # Ok::<(), agui_server::agents::RemoteError>(())
/// ```
pub struct Remote {
    endpoint: Arc<Endpoint>,
    description: Option<String>,
}

impl Remote {
    /// Makes an agent. Reads the environment variables that the options name; makes no request.
    ///
    /// # Errors
    /// [`RemoteError`], if an option is wrong or TLS cannot be set up.
    pub fn new(options: RemoteOptions) -> Result<Self, RemoteError> {
        let endpoint = Arc::new(Endpoint::new(&options)?);
        Ok(Self { endpoint, description: options.description })
    }
}

impl fmt::Debug for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Remote").field("url", &self.endpoint.url().as_str()).finish_non_exhaustive()
    }
}

impl Agent for Remote {
    fn run(&self, input: RunAgentInput, cx: RunContext) -> EventStream {
        let endpoint = self.endpoint.clone();
        event_stream(async_stream::try_stream! {
            let mut frames = endpoint.send(input, cx.forwarded()).await?;
            let mut reader = Reader::default();
            let ending = loop {
                let Some(frame) = frames.next().await else { break RunEnding::Missing };
                let frame = frame.map_err(|fault| broken_stream(fault, reader.next_number()))?;
                // An event without its empty line at the end of the stream is incomplete and ignored (HTML, 9.2.6).
                if frame.is_cut_off || frame.data.is_empty() {
                    continue;
                }
                match reader.read(&frame.data).map_err(malformed_event)? {
                    Decoded::Nothing => {}
                    Decoded::Started(started) => check_started(&started, &cx),
                    Decoded::Event(event) => yield event,
                    Decoded::Finished(finished) => break RunEnding::Finished(Event::RunFinished(finished)),
                    Decoded::Failed(error) => break RunEnding::Failed(run_error(error, &cx)),
                }
            };
            match ending {
                RunEnding::Finished(event) => {
                    close_in_background(frames);
                    yield event;
                }
                RunEnding::Failed(error) => {
                    close_in_background(frames);
                    Err(error)?;
                }
                RunEnding::Missing => Err(incomplete())?,
            }
        })
    }

    fn capabilities(&self) -> AgentCapabilities {
        let described =
            |description| IdentityCapabilities { description: Some(description), ..IdentityCapabilities::default() };
        AgentCapabilities { identity: self.description.clone().map(described), ..AgentCapabilities::default() }
    }
}

enum RunEnding {
    Finished(Event),
    Failed(AgentError),
    /// The stream ended without a terminal event.
    Missing,
}

/// Logs a remote run with other ids, which matters when the logs of both servers are compared, and an unknown version.
fn check_started(started: &RunStarted, cx: &RunContext) {
    if started.thread_id != *cx.thread_id() || started.run_id != *cx.run_id() {
        let (thread, run) = (for_log(&started.thread_id), for_log(&started.run_id));
        tracing::warn!(?thread, ?run, "the remote agent's RUN_STARTED has other ids than this run");
    }
    if let Some(version) = started.protocol_version.as_deref()
        && classify_version(version) != VersionSupport::Supported
    {
        let version = for_log(version);
        tracing::warn!(?version, "the remote agent speaks a version of AG-UI that this server does not know");
    }
}

fn for_log(text: &str) -> String {
    text.chars().take(MAX_LOGGED_CHARS).collect()
}

fn run_error(error: RunError, cx: &RunContext) -> AgentError {
    error.usage.into_iter().for_each(|usage| cx.add_usage(usage));
    AgentError::new(error.code.unwrap_or("remote_error".into()), error.message)
}

/// Reads the response to its end in the background. Many endpoints clean up after the last event and treat a closed
/// connection as a client that left; and a connection whose response has ended can be reused.
fn close_in_background(mut frames: ServerEvents) {
    let closing = async move {
        let mut late = 0;
        let reading = async {
            while let Some(Ok(_)) = frames.next().await {
                late += 1;
                if late == MAX_LATE_EVENTS {
                    break;
                }
            }
        };
        let closed = tokio::time::timeout(CLOSE_TIMEOUT, reading).await.is_ok();
        if late > 0 {
            tracing::warn!(ignored = late, "the remote agent sent events after the last one");
        }
        if !closed {
            tracing::debug!("the remote agent did not end its response in time");
        }
    };
    tokio::spawn(closing.in_current_span());
}
