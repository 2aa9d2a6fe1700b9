//! Why a run was not started.

use std::time::Duration;

use crate::store::StoreError;

/// Why a run was not started. Nothing has happened then.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The server is at its limit of concurrent runs.
    #[error("the server is at its limit of concurrent runs")]
    TooManyRuns,
    /// The server is shutting down.
    #[error("the server is shutting down")]
    ShuttingDown,
    /// The principal is at its limit of concurrent runs.
    #[error("you are at your limit of concurrent runs")]
    TooManyRunsOfPrincipal,
    /// The principal is at its limit of runs a minute.
    #[error("you are at your limit of runs a minute")]
    TooManyRunsPerMinute {
        /// When the next one is possible.
        retry_after: Duration,
    },
    /// A value of the input cannot be used.
    #[error("{path}: {problem}")]
    InvalidInput {
        /// The JSON path of the value.
        path: String,
        /// What is wrong, such as `expected "cancel" or "continue"`.
        problem: String,
    },
    /// The client sent a system or developer message, which this server does not accept.
    #[error("{path}: messages of this role are not accepted from clients")]
    RoleNotAccepted {
        /// The JSON path of the role.
        path: String,
    },
    /// A run of this id is running in another response, or waits for its turn.
    #[error("this run is running already")]
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
    /// The thread would become larger than the server keeps threads.
    #[error("the thread would have {messages} messages and {bytes} bytes, more than the server keeps of a thread")]
    ThreadTooLarge {
        /// The number of messages.
        messages: u64,
        /// The bytes of its messages and states.
        bytes: u64,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}
