//! The gates before an agent, in their order. Each one refuses a request before anything of it is
//! stored. `docs/operations.md` lists them for operators ("What a run passes").
//!
//! Between them stand gates with files of their own: after [`Runs::reserve`] the memory of the
//! request (`limits/memory.rs`), after [`ThreadCore::reserve_detached`] the turn on the thread
//! (`turn/queue.rs`), at the end the size of the thread, which the store checks.

use std::sync::Arc;

use super::{
    conversation::ids::{LongId, check_id, check_message_ids},
    limits::{run_permit::RunPermit, start_error::StartError},
    runs::Runs,
    turn::thread_core::ThreadCore,
};
use agui_agent::{
    Principal,
    files::{AbsorbError, has_media},
    host::owner_of,
};
use agui_base::permits::{LimitReached, Permit};
use agui_protocol::{Message, Messages, RunAgentInput};

impl Runs {
    /// Returns the error that [`reserve`](Self::reserve) would return now, without taking a permit:
    /// for callers that have to wait before they can use one.
    ///
    /// # Errors
    /// The same as [`reserve`](Self::reserve).
    pub fn check_limits(&self, principal: Option<&Principal>) -> Result<(), StartError> {
        if !self.is_ready() {
            return Err(StartError::ShuttingDown);
        }
        let full = (StartError::TooManyRuns, StartError::TooManyRunsOfPrincipal);
        self.permits.check(&owner_of(principal)).map_err(|reached| limit_error(reached, full))?;
        self.rate.check(principal)
    }

    /// Takes a permit for one run, which counts against the limits of the server and of the principal.
    ///
    /// # Errors
    /// [`StartError::ShuttingDown`], [`StartError::TooManyRuns`], [`StartError::TooManyRunsOfPrincipal`] or
    /// [`StartError::TooManyRunsPerMinute`].
    pub fn reserve(&self, principal: Option<&Principal>) -> Result<RunPermit, StartError> {
        if !self.is_ready() {
            return Err(StartError::ShuttingDown);
        }
        let full = (StartError::TooManyRuns, StartError::TooManyRunsOfPrincipal);
        let taken = self.permits.try_take(&owner_of(principal), 1);
        let concurrent = taken.map_err(|reached| limit_error(reached, full))?;
        // Last, so that a run that another limit refuses is not counted for this minute.
        self.rate.count(principal)?;
        Ok(RunPermit { concurrent, detached: None, live: self.live.register(), memory: None })
    }

    /// Checks the length of ids, and the roles of messages.
    pub(super) fn check_input(&self, input: &RunAgentInput) -> Result<(), StartError> {
        check_ids(input)?;
        if self.threads.options.accept_instructions {
            return Ok(());
        }
        let first = input.messages.iter().position(Message::is_instruction);
        first.map_or(Ok(()), |at| {
            Err(StartError::RoleNotAccepted { path: format!("messages[{at}].role") })
        })
    }
}

impl ThreadCore {
    /// Takes a permit for a run that continues when its client leaves.
    pub(super) fn reserve_detached(
        &self,
        principal: Option<&Principal>,
    ) -> Result<Permit, StartError> {
        let full = (StartError::TooManyDetachedRuns, StartError::TooManyDetachedRunsOfPrincipal);
        let taken = self.detached.try_take(&owner_of(principal), 1);
        taken.map_err(|reached| limit_error(reached, full))
    }

    /// Checks that the owner may store more bytes.
    pub(super) async fn check_stored_bytes(&self, owner: &Arc<str>) -> Result<(), StartError> {
        self.stored_bytes.check(&self.store, &self.options.retention, owner).await
    }

    /// Stores the media of a client's messages as files. Returns whether some of them came as data.
    /// Refuses a message that names an unknown file.
    pub(super) async fn absorb(
        &self,
        owner: &str,
        messages: &mut Messages,
    ) -> Result<bool, StartError> {
        let Some(files) = self.files.as_ref().filter(|_| messages.iter().any(has_media)) else {
            return Ok(false);
        };
        files.absorb(owner, messages.to_mut()).await.map_err(|error| match error {
            AbsorbError::UnknownFile { message, part } => StartError::InvalidInput {
                path: format!("messages[{message}].content[{part}].source.value"),
                problem: "there is no such file".to_owned(),
            },
            AbsorbError::Store(error) => error.into(),
        })
    }
}

/// Returns the error of the server's limit, or that of the owner's.
fn limit_error(
    reached: LimitReached,
    (of_server, of_owner): (StartError, StartError),
) -> StartError {
    match reached {
        LimitReached::OfServer => of_server,
        LimitReached::OfOwner => of_owner,
    }
}

fn check_ids(input: &RunAgentInput) -> Result<(), LongId> {
    check_id(&input.thread_id, || "threadId".to_owned())?;
    check_id(&input.run_id, || "runId".to_owned())?;
    check_id(input.parent_run_id.as_deref().unwrap_or_default(), || "parentRunId".to_owned())?;
    let mut messages = input.messages.iter().enumerate();
    messages.try_for_each(|(at, message)| check_message_ids(message, || format!("messages[{at}]")))
}

impl From<LongId> for StartError {
    fn from(id: LongId) -> Self {
        Self::InvalidInput { problem: id.problem(), path: id.path }
    }
}
