//! The argument and the result of [`Runs::start`](super::Runs::start).

use super::{AgentEntry, OnDisconnect, Run, Slot, StoredRun, log::Follower};
use crate::{
    agent::{Forwarded, Principal},
    protocol::{Event, RunAgentInput},
};

/// A request to start a run.
#[derive(Debug)]
pub struct RunRequest {
    /// The right to start a run, from [`Runs::reserve`](super::Runs::reserve).
    pub slot: Slot,
    /// The agent to run.
    pub agent: AgentEntry,
    /// The client's input. An empty message id counts as a missing one.
    pub input: RunAgentInput,
    /// The principal of the request; `None` on a server without authentication.
    pub principal: Option<Principal>,
    /// The headers of the request that agents may see.
    pub forwarded: Forwarded,
    /// The endpoint's default for a client that leaves, below request and agent; `None` uses the server's default.
    pub on_disconnect: Option<OnDisconnect>,
}

impl RunRequest {
    /// Creates a request without a principal and headers.
    pub fn new(slot: Slot, agent: AgentEntry, input: RunAgentInput) -> Self {
        Self { slot, agent, input, principal: None, forwarded: Forwarded::default(), on_disconnect: None }
    }

    /// Separates the input, which admission changes, from the rest.
    pub(super) fn split(self) -> (Caller, RunAgentInput) {
        let Self { slot, agent, input, principal, forwarded, .. } = self;
        (Caller { slot, agent, principal, forwarded }, input)
    }
}

pub(super) struct Caller {
    pub(super) slot: Slot,
    pub(super) agent: AgentEntry,
    pub(super) principal: Option<Principal>,
    pub(super) forwarded: Forwarded,
}

/// A run that was started.
#[derive(Debug)]
pub enum StartedRun {
    /// A run that its response polls, on a server without stored threads.
    Stateless(Box<Run>),
    /// A run that its response polls, and whose end is stored.
    Stored(Box<StoredRun>),
    /// A run that a task polls; the response follows its log.
    Detached(DetachedRun),
}

/// A detached run, as the client that started it sees it.
#[derive(Debug)]
pub struct DetachedRun {
    /// Follows the log from its first event.
    pub follower: Follower,
    /// Events to send to this client after the first event of the log.
    pub snapshots: Vec<Event>,
}
