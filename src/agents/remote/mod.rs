//! An agent that is another AG-UI endpoint, in whatever language it is written.
//!
//! A run is sent on as the server has it, with the stored messages and state, and the answer's events become the
//! run's own. What the endpoint need not have is what this server gives: authentication, threads, runs to come back to,
//! limits, and a stream that is legal whatever happens.
//!
//! - `reader` reads AG-UI, strictly, and translates what is older than 1.0.
//! - This file asks, and decides how the run ends.
//!
//! | code | the run failed because |
//! |---|---|
//! | `remote_unreachable` | nobody answered |
//! | `remote_rejected` | the request was refused (4xx), or the answer is elsewhere (3xx) |
//! | `remote_failed` | the remote server failed (5xx) |
//! | `remote_timeout` | it was silent for too long |
//! | `remote_protocol` | what it sent is not AG-UI |
//! | `remote_incomplete` | the stream stopped before the run ended |
//! | `remote_error` | the remote agent said so, and gave no code of its own |

mod reader;
mod request;

use std::{fmt, sync::Arc, time::Duration};

use futures::StreamExt as _;
use secrecy::SecretString;
use tracing::Instrument as _;

use self::{
    reader::{Malformed, Read, Reader},
    request::Endpoint,
};
use crate::{
    agent::{Agent, AgentError, EventStream, RunContext, event_stream},
    protocol::{
        AgentCapabilities, Event, RunAgentInput, VersionSupport,
        capabilities::Identity,
        event::{RunError, RunStarted},
        judge_version,
    },
    upstream::{
        self,
        events::{ServerEvents, StreamFault},
    },
};

/// How long an endpoint may take to close a stream whose run has ended.
const CLOSING: Duration = Duration::from_secs(2);
/// How many events after the last one are looked at.
const MOST_IGNORED: usize = 100;

/// Where another AG-UI endpoint is, and how it is asked.
#[derive(Debug, Clone)]
pub struct RemoteOptions {
    /// The endpoint, `http` or `https`.
    pub url: String,
    /// What the agent is for.
    pub description: Option<String>,
    /// Headers that every request to it has.
    pub headers: Vec<(String, SecretString)>,
    /// Headers of the client's request that are sent on to it. The server has to let them through
    /// ([`HttpOptions::pass_headers`](crate::http::HttpOptions::pass_headers)).
    pub pass_headers: Vec<String>,
    /// How long connecting may take.
    pub connect_timeout: Duration,
    /// How long it may be silent. Comments in the stream are signs of life.
    pub idle_timeout: Duration,
    /// The most bytes of one event.
    pub max_event_bytes: usize,
}

impl RemoteOptions {
    /// An endpoint, with the default limits.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            description: None,
            headers: Vec::new(),
            pass_headers: Vec::new(),
            connect_timeout: upstream::CONNECT_TIMEOUT,
            idle_timeout: Duration::from_secs(60),
            max_event_bytes: 4 * 1024 * 1024,
        }
    }
}

/// Why an endpoint cannot be an agent.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RemoteError {
    /// The address is none.
    #[error("the endpoint's address: {0}")]
    Url(String),
    /// A header has a name or value that no header can have; the value is not shown.
    #[error("the header {0:?} has a name or a value that no header can have")]
    Header(String),
    /// TLS cannot be set up.
    #[error("no HTTP client: {0}")]
    Client(#[from] reqwest::Error),
}

/// An agent that is another AG-UI endpoint. See the [module](self).
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
    /// The agent behind an endpoint. Nothing is asked yet.
    ///
    /// # Errors
    /// When the address or a header cannot be used.
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
            let mut frames = endpoint.ask(input, cx.forwarded()).await?;
            let mut reader = Reader::default();
            let ending = loop {
                let Some(frame) = frames.next().await else { break Ending::Missing };
                let frame = frame.map_err(|fault| broken(fault, reader.next_number()))?;
                // What the end of the stream cut off is no event, by the rules of the format.
                if frame.last || frame.data.is_empty() {
                    continue;
                }
                match reader.read(&frame.data).map_err(malformed)? {
                    Read::Nothing => {}
                    Read::Started(started) => check_started(&started, &cx),
                    Read::Event(event) => yield event,
                    Read::Finished(finished) => break Ending::Event(Event::RunFinished(finished)),
                    Read::Failed(error) => break Ending::Error(failed(error, &cx)),
                }
            };
            match ending {
                Ending::Event(event) => {
                    close(frames);
                    yield event;
                }
                Ending::Error(error) => {
                    close(frames);
                    Err(error)?;
                }
                Ending::Missing => Err(incomplete())?,
            }
        })
    }

    fn capabilities(&self) -> AgentCapabilities {
        let described = |description| Identity { description: Some(description), ..Identity::default() };
        AgentCapabilities { identity: self.description.clone().map(described), ..AgentCapabilities::default() }
    }
}

/// How the remote run ended.
enum Ending {
    Event(Event),
    Error(AgentError),
    /// It did not say.
    Missing,
}

/// The remote server has a run of its own; whether it calls it as we do matters to whoever compares two logs.
fn check_started(started: &RunStarted, cx: &RunContext) {
    if started.thread_id != *cx.thread_id() || started.run_id != *cx.run_id() {
        let (thread, run) = (shortened(&started.thread_id), shortened(&started.run_id));
        tracing::warn!(?thread, ?run, "the remote agent calls the run by other ids than the server");
    }
    if let Some(version) = started.protocol_version.as_deref()
        && judge_version(version) != VersionSupport::Spoken
    {
        let version = shortened(version);
        tracing::warn!(?version, "the remote agent speaks a version of AG-UI that this server does not know");
    }
}

fn shortened(text: &str) -> String {
    text.chars().take(80).collect()
}

/// The failure that the remote agent reported, as this run's own.
fn failed(error: RunError, cx: &RunContext) -> AgentError {
    error.usage.into_iter().for_each(|usage| cx.add_usage(usage));
    AgentError::new(error.code.unwrap_or("remote_error".into()), error.message)
}

fn incomplete() -> AgentError {
    AgentError::new("remote_incomplete", "the remote agent's stream stopped before its run ended")
}

fn broken(fault: StreamFault, number: u64) -> AgentError {
    match fault {
        StreamFault::Broken(_) => incomplete().caused_by(fault),
        StreamFault::Silent(_) => silent().caused_by(fault),
        _ => {
            AgentError::new("remote_protocol", format!("the remote agent broke the protocol: event {number}: {fault}"))
        }
    }
}

fn silent() -> AgentError {
    AgentError::new("remote_timeout", "the remote agent did not answer in time")
}

fn malformed(malformed: Malformed) -> AgentError {
    AgentError::new("remote_protocol", format!("the remote agent broke the protocol: {malformed}"))
}

/// Lets the endpoint end its response, behind the run's back: many do their housekeeping after the last event and take
/// a closed connection for a client that left; and one that ended in order can be used again.
fn close(mut frames: ServerEvents) {
    let closing = async move {
        let mut ignored = 0;
        let reading = async {
            while let Some(Ok(_)) = frames.next().await {
                ignored += 1;
                if ignored == MOST_IGNORED {
                    break;
                }
            }
        };
        let closed = tokio::time::timeout(CLOSING, reading).await.is_ok();
        if ignored > 0 {
            tracing::warn!(ignored, "the remote agent sent events after the last one");
        }
        if !closed {
            tracing::debug!("the remote agent did not end its response");
        }
    };
    tokio::spawn(closing.in_current_span());
}
