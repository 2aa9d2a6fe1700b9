//! The one door for runs.

use std::sync::Arc;

use futures::future::BoxFuture;
use serde_json::Value;
use tokio::sync::OwnedSemaphorePermit;

use super::{
    DetachedRun, OnDisconnect, RunRequest, Runs, StartError, StartedRun, Threads, admission::Admission,
    plan::ClientInput,
};
use crate::protocol::{Message, RunAgentInput};

/// The longest identifier that a client may choose, in bytes.
const MAX_ID_BYTES: usize = 1024;

impl Runs {
    /// Starts a run: with a stored thread's conversation if the server stores threads, else with the client's alone.
    ///
    /// On a stored thread the run waits for its turn, and what the client brought is stored before the agent is asked.
    /// A request for a detached run that is running already follows that run.
    ///
    /// # Errors
    /// A [`StartError`]. Nothing has happened then.
    pub fn start(self: &Arc<Self>, request: RunRequest) -> BoxFuture<'_, Result<StartedRun, StartError>> {
        // The future is large, and its caller, a request's handler, is moved from place to place before it is polled.
        Box::pin(self.start_unboxed(request))
    }

    async fn start_unboxed(self: &Arc<Self>, mut request: RunRequest) -> Result<StartedRun, StartError> {
        check_ids(&request.input)?;
        let on_disconnect = self.on_disconnect(&request)?;
        let Some(threads) = &self.threads else {
            return Ok(StartedRun::Stateless(self.launch_stateless(request)));
        };
        threads.keep_running();
        threads.check_roles(&request.input.messages)?;
        if on_disconnect == OnDisconnect::Continue {
            request.slot.detached = Some(threads.detached_permit()?);
        }
        let key = threads.key(request.principal.as_ref(), &request.input.thread_id);
        if let Some(follower) = threads.follow_running(&key, &request)? {
            return Ok(StartedRun::Detached(DetachedRun { follower, snapshots: Vec::new() }));
        }
        let turn = threads.wait_for_turn(&key, &request.input.run_id).await?;
        if turn.is_cancelled() {
            return Ok(StartedRun::Stateless(self.launch_cancelled(request)));
        }
        let RunRequest { slot, agent, input, principal, forwarded, .. } = request;
        match threads.admit(key, turn, agent.name(), slot.detached.is_some(), ClientInput::from(input)).await? {
            Admission::Begun(begun) => self.launch(*begun, slot, agent, principal, forwarded),
            Admission::Running(follower) => Ok(StartedRun::Detached(DetachedRun { follower, snapshots: Vec::new() })),
            Admission::Cancelled(input) => {
                let request = RunRequest { slot, agent, input, principal, forwarded, on_disconnect: None };
                Ok(StartedRun::Stateless(self.launch_cancelled(request)))
            }
        }
    }

    /// Decides what happens when the client leaves: the request, else the agent, else the endpoint, else the server.
    fn on_disconnect(&self, request: &RunRequest) -> Result<OnDisconnect, StartError> {
        let of_request = match request.input.forwarded_prop("onDisconnect") {
            None | Some(Value::Null) => None,
            Some(Value::String(text)) if text == "cancel" => Some(OnDisconnect::Cancel),
            Some(Value::String(text)) if text == "continue" => Some(OnDisconnect::Continue),
            Some(_) => {
                let (path, problem) = ("forwardedProps.onDisconnect", "expected \"cancel\" or \"continue\"");
                return Err(StartError::InvalidInput { path: path.to_owned(), problem: problem.to_owned() });
            }
        };
        // Without a store no run outlives its connection.
        let Some(threads) = &self.threads else { return Ok(OnDisconnect::Cancel) };
        let of_agent = || threads.options.on_disconnect_of.get(request.agent.name()).copied();
        Ok(of_request.or_else(of_agent).or(request.on_disconnect).unwrap_or(threads.options.on_disconnect))
    }
}

impl Threads {
    fn detached_permit(&self) -> Result<OwnedSemaphorePermit, StartError> {
        self.detached.clone().try_acquire_owned().map_err(|_| StartError::TooManyDetachedRuns)
    }

    fn check_roles(&self, messages: &[Message]) -> Result<(), StartError> {
        if self.options.accept_instructions {
            return Ok(());
        }
        let place = messages.iter().position(|m| matches!(m, Message::System(_) | Message::Developer(_)));
        place.map_or(Ok(()), |at| Err(StartError::RoleNotAccepted { path: format!("messages[{at}].role") }))
    }
}

fn check_ids(input: &RunAgentInput) -> Result<(), StartError> {
    let check = |id: &str, path: &dyn Fn() -> String| match id.len() <= MAX_ID_BYTES {
        true => Ok(()),
        false => {
            let problem = format!("longer than {MAX_ID_BYTES} bytes");
            Err(StartError::InvalidInput { path: path(), problem })
        }
    };
    check(&input.thread_id, &|| "threadId".to_owned())?;
    check(&input.run_id, &|| "runId".to_owned())?;
    check(input.parent_run_id.as_deref().unwrap_or_default(), &|| "parentRunId".to_owned())?;
    for (at, message) in input.messages.iter().enumerate() {
        check(message.id(), &|| format!("messages[{at}].id"))?;
        for (call_at, call) in message.tool_calls().iter().enumerate() {
            check(&call.id, &|| format!("messages[{at}].toolCalls[{call_at}].id"))?;
        }
        if let Message::Tool(result) = message {
            check(&result.tool_call_id, &|| format!("messages[{at}].toolCallId"))?;
        }
    }
    Ok(())
}
