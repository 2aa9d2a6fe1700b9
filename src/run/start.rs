//! Starts runs. Change the order of the steps, and which setting decides what happens when a client leaves, here.

use std::sync::Arc;

use futures::future::BoxFuture;
use serde_json::Value;
use tokio::sync::OwnedSemaphorePermit;

use super::{
    DetachedRun, OnDisconnect, RunRequest, Runs, StartError, StartedRun, Threads, admission::Admission,
    plan::ClientInput,
};
use crate::protocol::{Message, RunAgentInput};

const MAX_ID_BYTES: usize = 1024;

impl Runs {
    /// Starts a run, on the stored conversation of its thread if the server stores threads.
    ///
    /// On a stored thread the run waits for its turn, and the client's messages are stored before the agent runs. A request
    /// with the id of a running detached run follows that run.
    ///
    /// # Errors
    /// A [`StartError`], if no run was started and nothing was stored.
    pub fn start(self: &Arc<Self>, request: RunRequest) -> BoxFuture<'_, Result<StartedRun, StartError>> {
        // Boxed because it is large, and part of a handler's future that is moved before it is polled.
        Box::pin(self.start_unboxed(request))
    }

    async fn start_unboxed(self: &Arc<Self>, request: RunRequest) -> Result<StartedRun, StartError> {
        check_ids(&request.input)?;
        let on_disconnect = self.on_disconnect(&request)?;
        let (mut caller, input) = request.split();
        let Some(threads) = &self.threads else {
            return Ok(StartedRun::Stateless(self.launch_stateless(caller, input)));
        };
        threads.start_tasks();
        threads.check_roles(&input.messages)?;
        if on_disconnect == OnDisconnect::Continue {
            caller.slot.detached = Some(threads.detached_permit()?);
        }
        let key = threads.key(caller.principal.as_ref(), &input.thread_id);
        if let Some(follower) = threads.follow_running(&key, &input.run_id)? {
            return Ok(StartedRun::Detached(DetachedRun { follower, snapshots: Vec::new() }));
        }
        let turn = threads.wait_for_turn(&key, &input.run_id).await?;
        if turn.is_cancelled() {
            return Ok(StartedRun::Stateless(self.launch_cancelled(caller, input)));
        }
        let is_detached = caller.slot.detached.is_some();
        match threads.admit(key, turn, caller.agent.name(), is_detached, ClientInput::from(input)).await? {
            Admission::Begun(begun) => self.launch(*begun, caller),
            Admission::Running(follower) => Ok(StartedRun::Detached(DetachedRun { follower, snapshots: Vec::new() })),
            Admission::Cancelled(input) => Ok(StartedRun::Stateless(self.launch_cancelled(caller, input))),
        }
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
}

impl Threads {
    fn detached_permit(&self) -> Result<OwnedSemaphorePermit, StartError> {
        self.detached.clone().try_acquire_owned().map_err(|_| StartError::TooManyDetachedRuns)
    }

    fn check_roles(&self, messages: &[Message]) -> Result<(), StartError> {
        if self.options.accept_instructions {
            return Ok(());
        }
        let first = messages.iter().position(|m| matches!(m, Message::System(_) | Message::Developer(_)));
        first.map_or(Ok(()), |at| Err(StartError::RoleNotAccepted { path: format!("messages[{at}].role") }))
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
