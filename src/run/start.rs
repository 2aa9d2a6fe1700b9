//! Starts runs. Change the order of the steps, and which setting decides what happens when a client leaves, here.

use std::{collections::HashSet, sync::Arc};

use futures::future::BoxFuture;
use serde_json::Value;

use super::{
    admission::Admission,
    conversation::{
        branch::is_claim,
        ids::{LongId, check_id, check_message_ids},
        plan::ClientInput,
    },
    limits::{
        owner_limit::{LimitReached, OwnerPermit},
        start_error::StartError,
    },
    options::OnDisconnect,
    request::{DetachedRun, RunRequest, StartedRun},
    runs::Runs,
    turn::thread_runs::{ThreadRuns, owner_of},
};
use crate::{
    agent::{AppRequest, Principal},
    protocol::{Message, RunAgentInput},
};

impl Runs {
    /// Starts a run, on the stored conversation of its thread if the server stores threads.
    ///
    /// On a stored thread the run waits for its turn, and the client's messages are stored before the agent runs. A request
    /// with the id of a running detached run follows that run. A request of an MCP app is answered beside the thread.
    ///
    /// # Errors
    /// A [`StartError`], if no run was started and nothing was stored.
    pub(crate) fn start(self: &Arc<Self>, request: RunRequest) -> BoxFuture<'_, Result<StartedRun, StartError>> {
        // Boxed because it is large, and part of a handler's future that is moved before it is polled.
        Box::pin(self.start_unboxed(request))
    }

    async fn start_unboxed(self: &Arc<Self>, request: RunRequest) -> Result<StartedRun, StartError> {
        check_ids(&request.input)?;
        let (on_disconnect, is_answer) = (self.on_disconnect(&request)?, request.is_answer);
        let (mut caller, input) = request.split();
        self.check_roles(&input.messages)?;
        let Some(threads) = self.threads.as_ref().filter(|_| !AppRequest::is_in(&input)) else {
            return Ok(StartedRun::Unstored(self.launch_unstored(caller, input, HashSet::new())));
        };
        threads.start_tasks();
        if on_disconnect == OnDisconnect::Continue {
            caller.slot.detached = Some(threads.detached_permit(caller.principal.as_ref())?);
        }
        let key = threads.key(caller.principal.as_ref(), &input.thread_id);
        if let Some(follower) = threads.follow_running(&key, &input.run_id)? {
            return Ok(StartedRun::Detached(DetachedRun { follower, snapshots: Vec::new() }));
        }
        let turn = threads.wait_for_turn(&key, &input.run_id).await?;
        if turn.is_cancelled() {
            return Ok(StartedRun::Unstored(self.launch_cancelled(caller, input)));
        }
        let client = ClientInput::new(input, is_answer);
        match threads.admit(key, turn, &caller, client).await? {
            Admission::Begun(begun) => self.launch(*begun, caller),
            Admission::Running(follower) => Ok(StartedRun::Detached(DetachedRun { follower, snapshots: Vec::new() })),
            Admission::Cancelled(input) => Ok(StartedRun::Unstored(self.launch_cancelled(caller, input))),
        }
    }

    /// Starts a run that is not stored, also on a server that stores threads. It ends with its response.
    ///
    /// No run of this server has made the calls and the interrupts in its input: the calls are not run, and answers to
    /// interrupts are ignored.
    ///
    /// # Errors
    /// A [`StartError`], if no run was started.
    pub(crate) fn start_unstored(&self, request: RunRequest) -> Result<StartedRun, StartError> {
        check_ids(&request.input)?;
        let (caller, mut input) = request.split();
        self.check_roles(&input.messages)?;
        input.resume = Vec::new();
        let claims = input.messages.iter().filter(|message| is_claim(message));
        let claims = claims.map(|message| message.id().clone()).collect();
        Ok(StartedRun::Unstored(self.launch_unstored(caller, input, claims)))
    }

    fn on_disconnect(&self, request: &RunRequest) -> Result<OnDisconnect, StartError> {
        let requested = match request.input.forwarded_prop("onDisconnect") {
            None | Some(Value::Null) => None,
            Some(Value::String(text)) if text == "cancel" => Some(OnDisconnect::Cancel),
            Some(Value::String(text)) if text == "continue" => Some(OnDisconnect::Continue),
            Some(_) => {
                let (path, problem) = ("forwardedProps.onDisconnect", "expected \"cancel\" or \"continue\"");
                return Err(StartError::InvalidInput { path: path.to_owned(), problem: problem.to_owned() });
            }
        };
        // Without a store there are no detached runs.
        let Some(threads) = &self.threads else { return Ok(OnDisconnect::Cancel) };
        let of_agent = || threads.options.on_disconnect_of.get(request.agent.name()).copied();
        Ok(requested.or_else(of_agent).or(request.on_disconnect).unwrap_or(threads.options.on_disconnect))
    }

    fn check_roles(&self, messages: &[Message]) -> Result<(), StartError> {
        if self.accept_instructions {
            return Ok(());
        }
        let first = messages.iter().position(Message::is_instruction);
        first.map_or(Ok(()), |at| Err(StartError::RoleNotAccepted { path: format!("messages[{at}].role") }))
    }
}

impl ThreadRuns {
    fn detached_permit(&self, principal: Option<&Principal>) -> Result<OwnerPermit, StartError> {
        self.detached.take(&owner_of(principal)).map_err(|reached| match reached {
            LimitReached::OfServer => StartError::TooManyDetachedRuns,
            LimitReached::OfOwner => StartError::TooManyDetachedRunsOfPrincipal,
        })
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
