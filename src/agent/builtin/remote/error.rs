//! Errors of remote agents: of their options, and of their runs.

use super::reader::Malformed;
use crate::{
    agent::AgentError,
    upstream::{ClientError, events::StreamError},
};

/// The error of an endpoint that cannot be an agent.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RemoteError {
    /// An option is wrong.
    #[error("{option}: {problem}")]
    Option {
        /// The key of the option, such as `url`.
        option: &'static str,
        /// The problem. It does not show values of headers.
        problem: String,
    },
    /// TLS cannot be set up.
    #[error("the HTTP client cannot be created: {0}")]
    Client(#[from] ClientError),
}

impl RemoteError {
    pub(super) fn option(option: &'static str, problem: impl Into<String>) -> Self {
        Self::Option { option, problem: problem.into() }
    }
}

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
