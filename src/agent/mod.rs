//! What answers a run: the [`Agent`] trait, what an agent is told ([`RunContext`]), how it fails
//! ([`AgentError`]) and [shorthands](emit) for the events it sends.
//!
//! An agent turns one [`RunAgentInput`] into a stream of events. It does not write the run's frame:
//! the driver opens the run before it polls the agent and closes it when the stream ends, whatever
//! happens in between.

mod context;
pub mod emit;
mod error;

pub use context::{Forwarded, RunContext, RunIdentity};
pub use error::AgentError;

use futures::stream::{BoxStream, Stream, StreamExt as _};

pub use crate::auth::Principal;
use crate::protocol::{AgentCapabilities, Event, RunAgentInput};

/// The events of a run, as an agent yields them. Dropping the stream stops the work behind it.
pub type EventStream = BoxStream<'static, Result<Event, AgentError>>;

/// Answers a run with a stream of events.
///
/// Any `Fn(RunAgentInput, RunContext) -> EventStream` is an agent; with
/// [`async_stream::try_stream!`](https://docs.rs/async-stream) one is a few lines:
///
/// ```
/// use agui_server::agent::{Agent, RunContext, emit::TextMessage, event_stream};
/// use agui_server::protocol::RunAgentInput;
///
/// let greet = |_: RunAgentInput, _: RunContext| event_stream(async_stream::try_stream! {
///     let message = TextMessage::new();
///     yield message.start();
///     yield message.delta("Hello!");
///     yield message.end();
/// });
/// fn is_an_agent(_: impl Agent) {}
/// is_an_agent(greet);
/// ```
pub trait Agent: Send + Sync + 'static {
    /// Starts the work. The stream is polled when the client is ready for more; it is dropped when the
    /// client leaves, the run is cancelled or its time is over.
    fn run(&self, input: RunAgentInput, cx: RunContext) -> EventStream;

    /// What the agent says about itself before a run. Declares nothing by default.
    fn capabilities(&self) -> AgentCapabilities {
        AgentCapabilities::default()
    }
}

impl<F> Agent for F
where
    F: Fn(RunAgentInput, RunContext) -> EventStream + Send + Sync + 'static,
{
    fn run(&self, input: RunAgentInput, cx: RunContext) -> EventStream {
        self(input, cx)
    }
}

/// Makes an [`EventStream`] of any stream of events, such as a `try_stream!`.
pub fn event_stream(stream: impl Stream<Item = Result<Event, AgentError>> + Send + 'static) -> EventStream {
    stream.boxed()
}

/// Makes an [`EventStream`] of events that are known beforehand.
pub fn events<I>(events: I) -> EventStream
where
    I: IntoIterator<Item = Event>,
    I::IntoIter: Send + 'static,
{
    futures::stream::iter(events.into_iter().map(Ok)).boxed()
}
