//! The error of starting a run.

use std::time::Duration;

use super::stored_bytes::StorageLimit;
use crate::store::StoreError;

/// An error of starting a run. No run was started, and nothing was stored.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum StartError {
    /// The server is at its limit of concurrent runs.
    #[error("the server is at its limit of concurrent runs")]
    TooManyRuns,
    /// The request, or its thread, found no room in the memory of all runs.
    #[error("the running runs take too much memory; try again later")]
    TooManyRunBytes,
    /// The server is shutting down.
    #[error("the server is shutting down")]
    ShuttingDown,
    /// The principal is at its limit of concurrent runs.
    #[error("you are at your limit of concurrent runs")]
    TooManyRunsOfPrincipal,
    /// The principal is at its limit of runs a minute.
    #[error("you are at your limit of runs a minute")]
    TooManyRunsPerMinute {
        /// The time after which the next run is admitted.
        retry_after: Duration,
    },
    /// A value of the input is invalid.
    #[error("{path}: {problem}")]
    InvalidInput {
        /// The JSON path of the value.
        path: String,
        /// The problem, such as `expected "cancel" or "continue"`.
        problem: String,
    },
    /// The client sent a system or developer message, which this server does not accept.
    #[error("{path}: messages of this role are not accepted from clients")]
    RoleNotAccepted {
        /// The JSON path of the role.
        path: String,
    },
    /// A run of this id is running in another response, or waits for its turn.
    #[error("a run with this id is already running or waiting")]
    RunIsRunning,
    /// Another run of the thread is running, and the server does not queue runs.
    #[error("another run of this thread is running")]
    ThreadIsBusy,
    /// The thread's queue is full, or the run has waited in it for too long.
    #[error("too many runs of this thread are waiting")]
    QueueFull,
    /// The server is at its limit of detached runs.
    #[error("the server is at its limit of detached runs")]
    TooManyDetachedRuns,
    /// The principal is at its limit of detached runs.
    #[error("you are at your limit of detached runs")]
    TooManyDetachedRunsOfPrincipal,
    /// The server, or the principal, is at its limit of followers of runs.
    #[error("too many clients follow runs; try again later")]
    TooManyFollowers,
    /// The thread would become larger than the limit.
    #[error(
        "the thread would have {messages} messages and {bytes} bytes, which is above the limit: start a new thread"
    )]
    ThreadTooLarge {
        /// The number of messages.
        messages: u64,
        /// The size of its messages and states, in bytes.
        bytes: u64,
    },
    /// The principal, or the server, is at its limit of stored bytes.
    #[error(transparent)]
    Storage(#[from] StorageLimit),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}
