//! One run's life, free of HTTP.
//!
//! - [`Runner`] knows the agents, admits runs and drains them at shutdown; `quota` counts what each principal has of them.
//! - [`Run`] is the driver of one: it opens the run, polls the agent, and closes the run exactly once,
//!   whatever happens.
//! - [`Guard`] stands between agent and client: what leaves it is a legal AG-UI stream.
//! - [`Transcript`] applies events to messages and state as a client does.
//! - [`Threads`] puts runs on stored threads: history, interrupts, one run at a time, and runs that outlive their
//!   connection, whose log a [`Tail`] follows.
//!
//! A run is polled by whoever consumes it, a response body or a task; there is no channel and no queue.

mod clock;
mod control;
mod driver;
pub mod guard;
mod log;
mod quota;
mod runner;
mod threads;
mod transcript;

pub use clock::RunLimits;
pub use control::RunControl;
pub use driver::{Progress, Run};
pub use guard::{Guard, Violation};
pub use log::{Chunk, Tail, TailError};
pub use quota::PrincipalLimits;
pub use runner::{AgentEntry, Runner, RunnerBuilder, Slot, StartError};
pub use threads::{
    Cancelled, ConcurrentRuns, Connection, ForegroundRun, LookupError, OnDisconnect, OpenError, Opened, RunRequest,
    ThreadOptions, Threads, has_expired,
};
pub use transcript::Transcript;

pub use crate::agent::{Forwarded, Principal};

use std::task::{Context, Poll};

use crate::protocol::Event;

/// A run that somebody polls for its events.
pub trait Drive {
    /// The span that the run's log lines belong to.
    fn span(&self) -> &tracing::Span;

    /// Moves the run on by about one event, which goes to the sink.
    fn poll_progress(&mut self, cx: &mut Context<'_>, sink: &mut impl EventSink) -> Poll<Progress>;

    /// Whether the terminal event follows within moments, so that what went to the sink before may wait for it. If it
    /// does not follow, the task is woken, and the answer is no.
    fn is_ending(&self) -> bool {
        false
    }
}

/// Where the events of a run go, in order. An event is only borrowed: an encoder writes it out at once.
pub trait EventSink {
    /// Takes the next event.
    fn emit(&mut self, event: &Event);
}

impl EventSink for Vec<Event> {
    fn emit(&mut self, event: &Event) {
        self.push(event.clone());
    }
}
