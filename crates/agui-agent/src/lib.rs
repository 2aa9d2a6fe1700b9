//! Agents: the [`Agent`] trait, [`agent_fn`] for agents written as an async function, and the input
//! of both.
//!
//! An agent turns one [`RunAgentInput`] into a stream of events. It does not write the run's frame: the driver in
//! `agui-run` sends `RUN_STARTED` before it polls the agent, and the terminal event after the agent's last
//! one.

// `unwrap_used` is in the root's Cargo.toml. A panic would end a run or a request, so a comment at
// each panic says why input cannot reach it.
#![cfg_attr(not(test), warn(clippy::expect_used, clippy::panic, clippy::unreachable))]

mod a2ui;
mod agent_fn;
#[doc(hidden)]
pub mod app_request;
mod context;
pub mod emit;
mod emitter;
mod error;
mod event_queue;
#[doc(hidden)]
pub mod files;
mod journal;
mod logins;
mod principal;
mod registry;
#[doc(hidden)]
pub mod surfaces;
mod upstream_ids;

pub use a2ui::{A2ui, A2uiAgent};
pub(crate) use a2ui::{RunSurfaces, SurfaceFault};
pub use agent_fn::{AgentFn, IntoAgent, agent_fn};
pub use app_request::AppRequest;
pub use context::RunContext;
pub use emitter::{ActivityHandle, Emitter, TextWriter, ToolCallHandle};
pub use error::{AgentError, AgentResult};
pub use journal::Continuation;
pub use upstream_ids::ThreadIds;

use std::sync::Arc;

use futures::stream::{BoxStream, Stream, StreamExt as _};

use agui_protocol::{AgentCapabilities, Event, RunAgentInput};
pub use principal::Principal;

/// The events of a run, as an agent yields them. Dropping the stream stops the work behind it.
pub type EventStream = BoxStream<'static, Result<Event, AgentError>>;

/// Answers a run with a stream of events, for agents that are streams already or keep data of their
/// own. Other agents use [`agent_fn`]. Any `Fn(RunAgentInput, RunContext) -> EventStream` is an
/// agent:
///
/// ```
/// use agui_agent::{Agent, RunContext, emit::TextMessage, events};
/// use agui_protocol::RunAgentInput;
///
/// let greet = |_: RunAgentInput, _: RunContext| events(TextMessage::whole("Hello!"));
/// fn is_an_agent(_: impl Agent) {}
/// is_an_agent(greet);
/// ```
pub trait Agent: Send + Sync + 'static {
    /// Starts the run. The stream is polled when the client can take more events, and dropped when the client leaves,
    /// the run is cancelled or its time is over.
    fn run(&self, input: RunAgentInput, cx: RunContext) -> EventStream;

    /// Responds to a run that is a request of an MCP app ([`AppRequest`]) with the run's result. The server calls this in place of
    /// [`run`](Self::run), beside the thread. By default the request is refused.
    fn respond_to_app(&self, _input: RunAgentInput, cx: RunContext) -> EventStream {
        let refused = std::future::ready(Err("the agent has no MCP apps".to_owned()));
        event_stream(app_request::respond(cx, refused))
    }

    /// The capabilities that the server publishes for this agent. None by default.
    fn capabilities(&self) -> AgentCapabilities {
        AgentCapabilities::default()
    }

    /// Returns whether a detached run continues after its server was stopped or lost: the next
    /// server then calls [`run`](Self::run) again, with a [`RunContext::continuation`]. False by
    /// default: such a run fails.
    fn can_continue(&self) -> bool {
        false
    }

    /// What its runs change outside their conversation: whether a request that comes twice may run twice, and whether the task of
    /// a subagent starts again if its server was lost. [`AgentEffects::Unknown`] by default.
    fn effects(&self) -> AgentEffects {
        AgentEffects::Unknown
    }

    /// Returns whether the agent runs at another server. Then it gets public URLs of files, or less
    /// data if they are not public. False by default.
    fn is_remote(&self) -> bool {
        false
    }

    /// Settings for A2UI; without them, runs render surfaces if their pages have a catalog. [`A2uiAgent`] gives them to any
    /// agent.
    fn a2ui(&self) -> Option<&A2ui> {
        None
    }
}

/// What the runs of an agent change outside their conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AgentEffects {
    /// Nothing: a run may be repeated at any time.
    None,
    /// The agent awaits [`RunContext::written`] before each call that must not be repeated, and changes nothing else.
    Announced,
    /// A run counts as having changed something from its first tool call on that is not for the page.
    Unknown,
}

/// Delegates the methods of an agent to another agent, except `run` and `a2ui`. The argument is the
/// place of the other agent in `self`.
#[doc(hidden)]
#[macro_export]
macro_rules! delegate_agent {
    ($($agent:tt)+) => {
        fn respond_to_app(&self, input: $crate::macros::RunAgentInput, cx: $crate::macros::RunContext) -> $crate::macros::EventStream {
            self.$($agent)+.respond_to_app(input, cx)
        }

        fn capabilities(&self) -> $crate::macros::AgentCapabilities {
            self.$($agent)+.capabilities()
        }

        fn can_continue(&self) -> bool {
            self.$($agent)+.can_continue()
        }

        fn effects(&self) -> $crate::macros::AgentEffects {
            self.$($agent)+.effects()
        }

        fn is_remote(&self) -> bool {
            self.$($agent)+.is_remote()
        }
    };
}

impl<F> Agent for F
where
    F: Fn(RunAgentInput, RunContext) -> EventStream + Send + Sync + 'static,
{
    fn run(&self, input: RunAgentInput, cx: RunContext) -> EventStream {
        self(input, cx)
    }
}

impl Agent for Arc<dyn Agent> {
    fn run(&self, input: RunAgentInput, cx: RunContext) -> EventStream {
        (**self).run(input, cx)
    }

    delegate_agent!(as_ref());

    fn a2ui(&self) -> Option<&A2ui> {
        (**self).a2ui()
    }
}

#[doc(hidden)]
/// Turns events of one run into UI activities, between its agent and its guard. The driver knows no
/// more of it.
pub trait Drawing: Send {
    /// Adds the activities to the events of the agent.
    fn draw(&mut self, events: EventStream) -> EventStream;

    /// Returns the events that end incomplete activities. Called after the agent was stopped before
    /// its end.
    fn stop(&mut self) -> Vec<Event>;
}

/// Begins the drawing of a run before its agent is called, and changes the agent's input. Returns
/// `None` if nothing is drawn.
#[doc(hidden)]
pub type BeginDrawing =
    fn(&dyn Agent, &mut RunAgentInput, &mut RunContext) -> Option<Box<dyn Drawing>>;

/// Makes an [`EventStream`] of any stream of events.
pub fn event_stream(
    stream: impl Stream<Item = Result<Event, AgentError>> + Send + 'static,
) -> EventStream {
    stream.boxed()
}

/// Makes an [`EventStream`] of a list of events.
pub fn events<I>(events: I) -> EventStream
where
    I: IntoIterator<Item = Event>,
    I::IntoIter: Send + 'static,
{
    futures::stream::iter(events.into_iter().map(Ok)).boxed()
}

#[doc(hidden)]
pub mod host;

/// The types that [`delegate_agent`] names.
#[doc(hidden)]
pub mod macros {
    pub use crate::{AgentEffects, EventStream, RunContext};
    pub use agui_protocol::{AgentCapabilities, RunAgentInput};
}
