//! Starts runs: the order of the steps, and which setting applies when a client disconnects.

use std::sync::Arc;

use futures::future::BoxFuture;
use tokio::time::timeout;

use super::{
    conversation::branch::is_agent_only,
    drive::driver::RunSource,
    limits::start_error::StartError,
    log::Follower,
    options::{ConcurrentRuns, OnDisconnect},
    request::{RunRequest, StartedRun},
    runs::Runs,
    turn::{
        queue::{RunTrigger, TurnGuard},
        thread_core::ThreadCore,
    },
};
use agui_agent::AppRequest;
use agui_protocol::{Messages, RunId};
use agui_store::ThreadKey;

impl Runs {
    /// Starts a run on the stored conversation of its thread.
    ///
    /// The run waits for its turn, and the client's messages are stored before the agent runs. A
    /// request with the id of a running detached run follows that run. A request of an MCP app
    /// starts its run beside the thread.
    ///
    /// # Errors
    /// A [`StartError`], if no run was started and nothing was stored.
    pub fn start(
        self: &Arc<Self>,
        request: RunRequest,
    ) -> BoxFuture<'_, Result<StartedRun, StartError>> {
        // Boxed because it is large, and part of a handler's future that is moved before it is polled.
        Box::pin(self.start_unboxed(request))
    }

    async fn start_unboxed(
        self: &Arc<Self>,
        mut request: RunRequest,
    ) -> Result<StartedRun, StartError> {
        if AppRequest::is_in(&request.input) {
            return self.start_beside_thread(request);
        }
        let threads = &self.threads;
        self.check_input(&request.input)?;
        self.start_tasks();
        if self.on_disconnect(&request) == OnDisconnect::Continue {
            request.permit.detached = Some(threads.reserve_detached(request.principal.as_ref())?);
        }
        let key = threads.key(request.principal.as_ref(), &request.input.thread_id);
        if let Some(followed) = threads.follow_running(&key, &request.input.run_id)? {
            return Ok(followed);
        }
        let turn = threads.wait_for_turn(&key, &request.input.run_id, request.trigger()).await?;
        if turn.is_cancelled() {
            return Ok(self.launch_cancelled(request));
        }
        self.admit(threads, key, turn, request).await
    }

    /// Starts a run beside its thread, for suggestions and requests of MCP apps: the thread is
    /// neither read nor written, and the run ends with its response.
    ///
    /// No run of this server has made the calls and the interrupts in its input: the calls are not
    /// run, and replies to interrupts are ignored.
    ///
    /// # Errors
    /// A [`StartError`], if no run was started.
    pub fn start_beside_thread(&self, mut request: RunRequest) -> Result<StartedRun, StartError> {
        let agent = request.agent.agent.clone();
        let source = if AppRequest::is_in(&request.input) {
            request.input.messages = Messages::default();
            RunSource::App(agent)
        } else {
            RunSource::Agent(agent)
        };
        self.check_input(&request.input)?;
        request.input.resume = Vec::new();
        let unverified = request.input.messages.iter().filter(|message| is_agent_only(message));
        let unverified = unverified.map(|message| message.id().clone()).collect();
        Ok(self.launch_unstored(request, source, unverified))
    }

    fn on_disconnect(&self, request: &RunRequest) -> OnDisconnect {
        let options = &self.threads.options;
        let of_agent = || options.on_disconnect_of.get(request.agent.name()).copied();
        let chosen = request.on_disconnect.or_else(of_agent).or(request.default_on_disconnect);
        chosen.unwrap_or(options.runs.on_disconnect)
    }
}

impl RunRequest {
    pub(super) fn trigger(&self) -> RunTrigger {
        if self.is_reply || !self.input.resume.is_empty() {
            RunTrigger::Reply
        } else {
            RunTrigger::Message
        }
    }
}

impl ThreadCore {
    /// Follows the run of this id, if it is running in this process.
    fn follow_running(
        &self,
        key: &ThreadKey,
        run_id: &RunId,
    ) -> Result<Option<StartedRun>, StartError> {
        let active = self.queue.active(key).filter(|active| active.run_id == *run_id);
        let Some(active) = active else { return Ok(None) };
        let log = active.log.clone().ok_or(StartError::RunIsRunning)?;
        let permit =
            self.followers.try_take(&key.owner, 1).map_err(|_| StartError::TooManyFollowers)?;
        tracing::info!(
            thread = key.id.as_str(),
            run = active.run_id.as_str(),
            "following the running run of this id"
        );
        let follower = Follower::from_live_log(
            &self.followed_logs,
            key.clone(),
            active.run_id.clone(),
            log,
            Some(permit),
        );
        Ok(Some(StartedRun::Detached { follower, snapshots: Vec::new() }))
    }

    async fn wait_for_turn(
        &self,
        key: &ThreadKey,
        run_id: &RunId,
        trigger: RunTrigger,
    ) -> Result<TurnGuard, StartError> {
        let max_queued = match self.options.concurrent_runs {
            ConcurrentRuns::Reject => 0,
            ConcurrentRuns::Queue | ConcurrentRuns::Supersede => self.options.max_queued,
        };
        let turn = self.queue.enter(key, run_id, trigger, max_queued)?;
        if self.options.concurrent_runs == ConcurrentRuns::Supersede
            && trigger == RunTrigger::Message
            && let Some(active) = self.queue.active(key)
        {
            active.control.cancel();
        }
        timeout(self.options.queue_timeout, turn.turn())
            .await
            .map_err(|_| StartError::QueueFull)?;
        Ok(turn)
    }
}
