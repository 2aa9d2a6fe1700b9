//! Starts runs: the order of the steps, and which setting applies when a client disconnects.

use std::{sync::Arc, time::Duration};

use futures::future::BoxFuture;
use tokio::time::{sleep, timeout};

use super::{
    admission::Admission,
    control::Stop,
    conversation::{asked::RequestDigest, branch::is_agent_only},
    drive::driver::RunSource,
    limits::start_error::StartError,
    log::Follower,
    options::{ConcurrentRuns, OnDisconnect},
    request::{RunRequest, StartedRun},
    runs::Runs,
    turn::{
        live_run::{LiveRun, LiveStage, RunClient, RunTrigger},
        queue::{Arrival, Entered, RunPlace},
        thread_core::ThreadCore,
    },
};
use agui_agent::AppRequest;
use agui_protocol::Messages;
use agui_store::ThreadKey;

/// The time that the same request waits for the log, or for the stored end, of its run.
const END_TIMEOUT: Duration = Duration::from_secs(5);

impl Runs {
    /// Starts a run on the stored conversation of its thread.
    ///
    /// The run waits for its turn, and the client's messages are stored before the agent runs. A
    /// request that comes again gets the run of the first one, or its result. A request of an MCP app
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
        let on_disconnect = self.on_disconnect(&request);
        if on_disconnect == OnDisconnect::Continue {
            request.permit.detached = Some(threads.reserve_detached(request.principal.as_ref())?);
        }
        let key = threads.key(request.principal.as_ref(), &request.input.thread_id);
        let asked = RequestDigest::of(request.agent.name(), &request.input, &request.forwarded);
        let place = loop {
            match threads.enter(&key, &request, asked.as_ref())? {
                Entered::Place(_) if threads.is_stopping() => return Err(StartError::ShuttingDown),
                Entered::Place(place) => break place,
                Entered::Same(run) => {
                    if let Some(joined) =
                        threads.join(&key, &run, &mut request, on_disconnect).await?
                    {
                        return Ok(joined);
                    }
                }
            }
        };
        if self.comes_behind(&key, &place, &request).await {
            let admission = Admission::prepare(self, threads, key, place, request).await?;
            return self.enqueue(admission).await;
        }
        match threads.wait_for_turn(&place).await? {
            None => self.admit(threads, key, place, request).await,
            Some(stop) => self.launch_stopped(stop, request),
        }
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
    /// True for a message whose run continues without its page.
    pub(super) fn is_storable(&self) -> bool {
        self.permit.detached.is_some() && self.trigger() == RunTrigger::Message
    }

    pub(super) fn trigger(&self) -> RunTrigger {
        if self.is_reply || !self.input.resume.is_empty() {
            RunTrigger::Reply
        } else {
            RunTrigger::Message
        }
    }
}

impl ThreadCore {
    fn enter(
        &self,
        key: &ThreadKey,
        request: &RunRequest,
        asked: Option<&RequestDigest>,
    ) -> Result<Entered, StartError> {
        let max_queued = match self.options.concurrent_runs {
            ConcurrentRuns::Reject => 0,
            ConcurrentRuns::Queue | ConcurrentRuns::Supersede => self.options.max_queued,
        };
        let (trigger, control) = (request.trigger(), &request.permit.live.control);
        let run_id = &request.input.run_id;
        let regenerates = request.regenerates;
        let arrival = Arrival { key, run_id, asked, trigger, regenerates, control };
        let entered = self.queue.enter(&arrival, max_queued)?;
        if self.options.concurrent_runs == ConcurrentRuns::Supersede
            && trigger == RunTrigger::Message
            && matches!(entered, Entered::Place(_))
            && let Some(running) = self.queue.running(key)
        {
            running.control.stop(Stop::Superseded);
        }
        Ok(entered)
    }

    /// Returns whether a queued run supersedes the one that has the turn.
    pub(super) fn is_superseded(&self, key: &ThreadKey) -> bool {
        self.options.concurrent_runs == ConcurrentRuns::Supersede && self.queue.has_superseding(key)
    }

    /// Waits for the turn of a run. Returns why the run was stopped before.
    async fn wait_for_turn(&self, place: &RunPlace) -> Result<Option<Stop>, StartError> {
        let run = &place.run;
        tokio::select! {
            () = run.reached(LiveStage::HasTurn) => Ok(run.control.requested()),
            () = run.control.stopped() => Ok(run.control.requested()),
            () = sleep(self.options.queue_timeout) => Err(StartError::QueueFull),
        }
    }

    /// Gives a request the run that the same request has here. Returns `None` once that run is over.
    async fn join(
        &self,
        key: &ThreadKey,
        run: &Arc<LiveRun>,
        request: &mut RunRequest,
        on_disconnect: OnDisconnect,
    ) -> Result<Option<StartedRun>, StartError> {
        // Counted from here on, so that the end of another connection does not end the run.
        let client = RunClient::of(run);
        let acknowledged = timeout(self.options.queue_timeout, run.acknowledged()).await;
        if acknowledged.map_err(|_| StartError::QueueFull)? {
            let follower = self.follow_queued(key, run, &request.input.run_id);
            let follower = follower.map_err(|_| StartError::TooManyFollowers)?;
            return Ok(Some(StartedRun::Detached { follower }));
        }
        if run.stage() == LiveStage::Running {
            let permit =
                self.followers.try_take(&key.owner, 1).map_err(|_| StartError::TooManyFollowers)?;
            if let Some(place) = request.permit.detached.take() {
                run.hold_place(place);
            } else if run.log().is_none() {
                let place = self.reserve_detached(request.principal.as_ref());
                run.hold_place(place.map_err(|_| StartError::RunIsRunning)?);
            }
            if on_disconnect == OnDisconnect::Continue {
                run.let_continue();
            }
            let alias = &request.input.run_id;
            if let Some(lease) = run.lease().filter(|_| run.run_id != *alias) {
                // After its end the run is found by it, too.
                self.store.set_alias(lease.thread, lease.run, alias).await?;
            }
            let log = timeout(END_TIMEOUT, run.shared_log()).await;
            if let Some(log) = log.map_err(|_| StartError::RunIsRunning)? {
                let (thread, id) = (key.id.as_str(), run.run_id.as_str());
                tracing::info!(thread, run = id, "a request that came again follows its run");
                let (logs, id) = (&self.followed_logs, run.run_id.clone());
                let follower = Follower::from_live_log(logs, key.clone(), id, log, Some(permit));
                let follower = follower.holding(client).called(&request.input.run_id);
                return Ok(Some(StartedRun::Detached { follower }));
            }
        }
        let ended = timeout(END_TIMEOUT, run.reached(LiveStage::Over)).await;
        ended.map(|()| None).map_err(|_| StartError::RunIsEnding)
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;
    use agui_agent::{RunContext, events};
    use agui_protocol::{Message, RunAgentInput};

    #[tokio::test(start_paused = true)]
    async fn a_request_whose_run_does_not_end_in_time_can_be_sent_again() {
        let agent = |_: RunAgentInput, _: RunContext| events([]);
        let runs = Runs::builder().agent("a", Arc::new(agent)).build();
        let request = || {
            let input = RunAgentInput::new("t", "r", vec![Message::user("u", "Hi")]);
            RunRequest::new(runs.reserve(None).unwrap(), runs.agent(None).unwrap(), input)
        };
        let (first, key) = (request(), runs.threads.key(None, &"t".into()));
        let asked = RequestDigest::of("a", &first.input, &first.forwarded);
        let Ok(Entered::Place(place)) = runs.threads.enter(&key, &first, asked.as_ref()) else {
            panic!("the thread is free")
        };
        place.run.enter(LiveStage::Left);
        let begin = Instant::now();
        let refused = runs.start(request()).await.err();
        assert!(matches!(refused, Some(StartError::RunIsEnding)), "{refused:?}");
        assert_eq!(begin.elapsed(), END_TIMEOUT);
        drop(place);
        assert!(runs.start(request()).await.is_ok());
    }
}
