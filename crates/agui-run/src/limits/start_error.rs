//! The error of starting a run.

use std::time::Duration;

use super::stored_bytes::StorageLimit;
use agui_base::refusals;
use agui_store::StoreError;

refusals! {
    /// An error of starting a run. No run was started, and nothing was stored.
    #[derive(Debug, thiserror::Error)]
    #[non_exhaustive]
    pub enum StartError {
        /// The server is at its limit of concurrent runs.
        #[error("the server is at its limit of concurrent runs")]
        #[refusal(SERVICE_UNAVAILABLE, "too_many_runs", Limits)]
        TooManyRuns,
        /// The runs' memory was exhausted, so the request or its thread did not get a permit in
        /// time.
        #[error("the running runs take too much memory; try again later")]
        #[refusal(SERVICE_UNAVAILABLE, "too_many_run_bytes", Limits)]
        TooManyRunBytes,
        /// The server is shutting down.
        #[error("the server is shutting down")]
        #[refusal(SERVICE_UNAVAILABLE, "shutting_down", Limits, Shutdown)]
        ShuttingDown,
        /// The principal is at its limit of concurrent runs.
        #[error("you are at your limit of concurrent runs")]
        #[refusal(TOO_MANY_REQUESTS, "too_many_concurrent_runs", Limits)]
        TooManyRunsOfPrincipal,
        /// The principal is at its limit of runs a minute.
        #[error("you are at your limit of runs a minute")]
        #[refusal(TOO_MANY_REQUESTS, "too_many_runs_per_minute", Limits)]
        TooManyRunsPerMinute {
            /// The time after which the next run is admitted.
            retry_after: Duration,
        },
        /// A value of the input is invalid.
        #[error("{path}: {problem}")]
        #[refusal(BAD_REQUEST, "invalid_input", Start)]
        InvalidInput {
            /// The JSON path of the value.
            path: String,
            /// The problem, such as `expected "cancel" or "continue"`.
            problem: String,
        },
        /// The client sent a system or developer message, which this server does not accept.
        #[error("{path}: messages of this role are not accepted from clients")]
        #[refusal(BAD_REQUEST, "role_not_accepted", Start)]
        RoleNotAccepted {
            /// The JSON path of the role.
            path: String,
        },
        /// A run of this id is running in another response, or is queued.
        #[error("a run with this id is already running or queued")]
        #[refusal(CONFLICT, "run_is_running", Start)]
        RunIsRunning,
        /// The run of the same request has ended, and its end is not stored yet.
        #[error("the end of this run is being stored; try again")]
        #[refusal(SERVICE_UNAVAILABLE, "run_is_ending", Start)]
        RunIsEnding,
        /// Another run of the thread is running, and the server does not queue runs.
        #[error("another run of this thread is running")]
        #[refusal(CONFLICT, "thread_is_busy", Start)]
        ThreadIsBusy,
        /// The thread's queue is full, or the run was queued for too long.
        #[error("too many runs are queued on this thread")]
        #[refusal(CONFLICT, "too_many_queued", Start)]
        QueueFull,
        /// The thread was deleted while the run was queued.
        #[error("the thread was deleted while the run was queued")]
        #[refusal(GONE, "thread_deleted", Start)]
        ThreadDeleted,
        /// The server is at its limit of detached runs.
        #[error("the server is at its limit of detached runs")]
        #[refusal(SERVICE_UNAVAILABLE, "too_many_detached_runs", Start)]
        TooManyDetachedRuns,
        /// The principal is at its limit of detached runs.
        #[error("you are at your limit of detached runs")]
        #[refusal(TOO_MANY_REQUESTS, "too_many_detached_runs", Start)]
        TooManyDetachedRunsOfPrincipal,
        /// The server, or the principal, is at its limit of followers of runs.
        #[error("too many clients follow runs; try again later")]
        #[refusal(SERVICE_UNAVAILABLE, "too_many_followers", Start)]
        TooManyFollowers,
        /// The thread would become larger than the limit.
        #[error(
            "the thread would have {messages} messages and {bytes} bytes, which is above the limit: start a new thread"
        )]
        #[refusal(PAYLOAD_TOO_LARGE, "thread_too_large", Start)]
        ThreadTooLarge {
            /// The number of messages.
            messages: u64,
            /// The size of its messages and states, in bytes.
            bytes: u64,
        },
        /// The principal, or the server, is at its limit of stored bytes.
        #[error(transparent)]
        #[refusal(StorageLimit)]
        Storage(#[from] StorageLimit),
        /// The store failed.
        #[error(transparent)]
        #[refusal(StoreError)]
        Store(#[from] StoreError),
    }
}

impl StartError {
    /// The member of the input that is wrong.
    pub fn path(&self) -> Option<&str> {
        match self {
            Self::InvalidInput { path, .. } | Self::RoleNotAccepted { path } => Some(path),
            _ => None,
        }
    }
}
