//! What is asked of [`Runs::start`](super::Runs::start), and what it returns.

use super::{AgentEntry, OnDisconnect, Run, Slot, StoredRun, log::Follower};
use crate::{
    agent::{Forwarded, Principal},
    protocol::{Event, RunAgentInput},
};

/// A run to start.
pub struct RunRequest {
    /// The right to a run, from [`Runs::reserve`](super::Runs::reserve).
    pub slot: Slot,
    /// The agent that answers.
    pub agent: AgentEntry,
    /// The client's input. Messages with an empty id count as messages without one.
    pub input: RunAgentInput,
    /// Who asks.
    pub principal: Option<Principal>,
    /// The request's headers that are meant for agents.
    pub forwarded: Forwarded,
    /// What happens when the client leaves, unless the request or the agent's configuration says otherwise: the
    /// default of the endpoint. `None` leaves it to the server's.
    pub on_disconnect: Option<OnDisconnect>,
}

impl RunRequest {
    /// A run without a principal.
    pub fn new(slot: Slot, agent: AgentEntry, input: RunAgentInput) -> Self {
        Self { slot, agent, input, principal: None, forwarded: Forwarded::default(), on_disconnect: None }
    }
}

/// A run that was started.
pub enum StartedRun {
    /// It lives in its response, on a server without stored threads.
    Stateless(Box<Run>),
    /// It lives in its response, and its end is stored.
    Stored(Box<StoredRun>),
    /// It lives in a task of its own; its log is the response.
    Detached(DetachedRun),
}

/// A detached run, for the client that asked for it.
pub struct DetachedRun {
    /// Follows the log from its first event.
    pub follower: Follower,
    /// Events for this client alone, to be sent after the first event of the log.
    pub snapshots: Vec<Event>,
}
