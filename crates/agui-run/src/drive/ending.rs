//! The end of a run, with its error for the client and its line in the log.

use std::any::Any;

use super::guard::Violation;
use crate::control::Stop;
use agui_agent::AgentError;
use agui_base::RunErrorCode;
use agui_protocol::{
    Event,
    event::{RunError, RunFinished},
};
use agui_store::EndReason;

pub(super) enum RunEnding {
    Finished(RunFinished),
    /// The run was stopped.
    Cancelled(EndReason),
    Failed(RunError),
}

impl From<Stop> for RunEnding {
    fn from(stop: Stop) -> Self {
        match stop {
            Stop::Cancel => Self::Cancelled(EndReason::Stopped),
            Stop::Left => Self::Cancelled(EndReason::Left),
            Stop::Superseded => Self::Cancelled(EndReason::Superseded),
            Stop::StoreUnavailable => Self::Failed(RunError::new(
                RunErrorCode::StoreUnavailable,
                "a call that must not be repeated could not be stored, and was not made; please try again",
            )),
            Stop::Shutdown => Self::Failed(RunError::new(
                RunErrorCode::ServerShutdown,
                "the server is shutting down; please try again",
            )),
            Stop::LeaseLost => Self::Failed(RunError::new(
                RunErrorCode::LeaseLost,
                "the server could not keep its lease of the thread; please try again",
            )),
            Stop::ThreadDeleted => Self::Failed(thread_deleted_error()),
            Stop::TooLong => Self::Failed(RunError::new(
                RunErrorCode::RunTooLong,
                "the run added more bytes than the server stores for a run",
            )),
        }
    }
}

/// Returns the end of a stream whose thread was deleted. It is an end, so that no client asks for the rest.
pub fn thread_deleted() -> Event {
    thread_deleted_error().into()
}

fn thread_deleted_error() -> RunError {
    RunError::new(RunErrorCode::ThreadDeleted, "the thread of this run was deleted")
}

// The functions below are cold, so that a run's end does not displace the code of its events from the instruction cache.

/// Returns the end for a lifecycle event of the agent; `None` ignores the event.
#[cold]
pub(super) fn lifecycle_ending(event: Event) -> Option<RunEnding> {
    match event {
        Event::RunFinished(finished) => Some(RunEnding::Finished(*finished)),
        Event::RunError(error) => {
            tracing::error!(
                code = error.code.as_deref(),
                reason = error.message.as_str(),
                "the agent reported a failure"
            );
            Some(RunEnding::Failed(error))
        }
        _ => {
            tracing::debug!("ignored RUN_STARTED of the agent: the server has sent it");
            None
        }
    }
}

#[cold]
pub(super) fn agent_failed(error: AgentError) -> RunEnding {
    match RunErrorCode::from_name(error.code()) {
        Some(RunErrorCode::ModelNotAllowed) => {
            tracing::debug!(?error, "the client chose a model that the agent may not use");
        }
        _ => tracing::error!(?error, "the agent failed"),
    }
    let (code, message) = error.into_code_and_message();
    RunEnding::Failed(RunError::new(code, message))
}

#[cold]
pub(super) fn agent_timed_out() -> RunEnding {
    tracing::error!("the agent was silent for too long");
    RunEnding::Failed(RunError::new(RunErrorCode::AgentTimeout, "the agent sent no event in time"))
}

#[cold]
pub(super) fn protocol_violated(violation: Violation) -> RunEnding {
    tracing::error!(%violation, "the agent broke the protocol");
    RunEnding::Failed(RunError::new(RunErrorCode::ProtocolViolation, violation.to_string()))
}

#[cold]
pub(super) fn agent_panicked(panic: Box<dyn Any + Send>) -> RunEnding {
    let text = panic
        .downcast_ref::<&str>()
        .copied()
        .or(panic.downcast_ref::<String>().map(String::as_str));
    tracing::error!(panic = text.unwrap_or("a value that is not text"), "the agent panicked");
    RunEnding::Failed(RunError::new(RunErrorCode::AgentPanic, "the agent failed unexpectedly"))
}
