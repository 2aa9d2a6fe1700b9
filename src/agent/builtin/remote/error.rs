//! Errors of the runs of remote agents.

use super::reader::Malformed;
use crate::{agent::AgentError, upstream::events::StreamError};

pub(super) fn incomplete() -> AgentError {
    AgentError::new("remote_incomplete", "the remote agent's stream stopped before its run ended")
}

pub(super) fn timed_out() -> AgentError {
    AgentError::new("remote_timeout", "the remote agent did not answer in time")
}

pub(super) fn malformed_event(error: Malformed) -> AgentError {
    AgentError::new("remote_protocol", format!("the remote agent broke the protocol: {error}"))
}

/// The stream cannot be read further than to this event, counted from 1.
pub(super) fn broken_stream(fault: StreamError, number: u64) -> AgentError {
    match fault {
        StreamError::Broken(_) => incomplete().caused_by(fault),
        StreamError::Silent(_) => timed_out().caused_by(fault),
        _ => {
            AgentError::new("remote_protocol", format!("the remote agent broke the protocol: event {number}: {fault}"))
        }
    }
}
