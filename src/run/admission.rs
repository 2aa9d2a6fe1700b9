//! Admits a run to its thread: waits for its turn in this process, then takes the lease in the store.

use std::{sync::Arc, time::Duration};

use tokio::time::{Instant, sleep, timeout};

use super::{
    agents::AgentEntry,
    conversation::{
        branch::LoadedThread,
        plan::{ClientInput, Plan, PlanError},
        resume::ResumeDecision,
        title::title_of,
    },
    events::thread_event_hub::ThreadChange,
    limits::{memory::RunMemory, start_error::StartError},
    log::Follower,
    options::ConcurrentRuns,
    persist::stored_request::StoredRequest,
    request::RunCaller,
    turn::{
        queue::{EnterError, TurnGuard},
        thread_runs::ThreadRuns,
    },
};
use crate::{
    agent::Principal,
    base::{complete_on_drop::CompleteOnDrop, trace::TraceContext},
    protocol::{Interrupt, RunAgentInput, RunId},
    store::{
        BeginOutcome, Lease, LostRun, NewRun, RunEnd, RunRecord, RunStatus, SharedStore, StoreError, ThreadKey,
        ThreadSize, Topic, now,
    },
};

/// The first and the longest interval of polling a thread that another process uses, while no signals arrive.
const POLL_BACKOFF: [Duration; 2] = [Duration::from_millis(25), Duration::from_millis(400)];
/// The interval while signals arrive. Signals can be lost.
const SLOW_POLL: Duration = Duration::from_secs(2);

pub(crate) enum Admission {
    Begun(Box<BegunRun>),
    /// A run with this id is running in another process, and can be followed.
    Running(Follower),
    Cancelled(RunAgentInput),
}

pub(crate) struct BegunRun {
    pub(crate) guard: LeaseGuard,
    pub(crate) client: ClientInput,
    /// The thread before the run; `None` if the run has created it.
    pub(crate) loaded: Option<LoadedThread>,
    pub(crate) plan: Plan,
    /// The version of the thread after the begin. The numbers below are those of its last message and its state.
    pub(crate) version: i64,
    pub(crate) last_message: i64,
    pub(crate) state_number: Option<i64>,
    /// The bytes that are stored of a detached run's request, beside messages and state.
    pub(crate) request_bytes: u64,
}

/// The lease and the turn of a run. If it is dropped before the run is launched, the run is ended in the store.
pub(crate) struct LeaseGuard {
    pub(crate) threads: Arc<ThreadRuns>,
    pub(crate) key: ThreadKey,
    pub(crate) lease: Lease,
    /// The head after the begin, and the interrupts that were open before it.
    head: i64,
    open_interrupts: Vec<Interrupt>,
    turn: Option<TurnGuard>,
}

impl LeaseGuard {
    /// Returns the turn to the launched run, which is now responsible for the lease.
    pub(crate) fn launch(mut self) -> Option<TurnGuard> {
        self.turn.take()
    }
}

impl Drop for LeaseGuard {
    fn drop(&mut self) {
        let Some(turn) = self.turn.take() else { return };
        let (threads, key) = (self.threads.clone(), self.key.clone());
        let (lease, head) = (self.lease.clone(), self.head);
        let open_interrupts = std::mem::take(&mut self.open_interrupts);
        // Without a runtime the process is ending. The next start or another server closes the run.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        runtime.spawn(async move {
            let end = RunEnd { interrupts: &open_interrupts, ..RunEnd::new(RunStatus::Cancelled, head) };
            match threads.store.call("finish", |store| store.finish(&lease, &end)).await {
                Ok(_) => threads.publish(&key, ThreadChange::Ended),
                // `LeaseLost`: the thread was deleted.
                Err(StoreError::LeaseLost) => {}
                Err(error) => {
                    tracing::warn!(?error, "a run that was not launched could not be ended; maintenance closes it");
                }
            }
            drop(turn);
        });
    }
}

impl ThreadRuns {
    pub(crate) fn follow_running(&self, key: &ThreadKey, run_id: &RunId) -> Result<Option<Follower>, StartError> {
        let active = self.queue.active(key).filter(|active| active.run_id == *run_id);
        let Some(active) = active else { return Ok(None) };
        let log = active.log.clone().ok_or(StartError::RunIsRunning)?;
        let permit = self.followers.take(&key.owner).map_err(|_| StartError::TooManyFollowers)?;
        tracing::info!(thread = ?key.id, run = ?active.run_id, "following the running run of this id");
        Ok(Some(Follower::from_live_log(self, key.clone(), active.run_id.clone(), log, Some(permit))))
    }

    pub(crate) async fn wait_for_turn(&self, key: &ThreadKey, run_id: &RunId) -> Result<TurnGuard, StartError> {
        let max_waiting = match self.options.concurrent_runs {
            ConcurrentRuns::Reject => 0,
            ConcurrentRuns::Queue | ConcurrentRuns::Supersede => self.options.max_queued,
        };
        let turn = self.queue.enter(key, run_id, max_waiting).map_err(|error| match error {
            EnterError::AlreadyQueued => StartError::RunIsRunning,
            EnterError::Full if max_waiting == 0 => StartError::ThreadIsBusy,
            EnterError::Full => StartError::QueueFull,
        })?;
        if self.options.concurrent_runs == ConcurrentRuns::Supersede
            && let Some(active) = self.queue.active(key)
        {
            active.control.cancel();
        }
        timeout(self.options.queue_timeout, turn.turn()).await.map_err(|_| StartError::QueueFull)?;
        Ok(turn)
    }

    pub(crate) async fn admit(
        self: &Arc<Self>,
        key: ThreadKey,
        turn: TurnGuard,
        caller: &RunCaller,
        client: ClientInput,
    ) -> Result<Admission, StartError> {
        self.stored_bytes.check::<StartError>(&self.store, &self.options.retention, &key.owner).await?;
        let (deadline, asked_at) = (Instant::now() + self.options.queue_timeout, now());
        let [mut poll, longest] = POLL_BACKOFF;
        let (loaded, bytes) = self.cache.take(&key).unzip();
        let RunCaller { slot, agent, principal, forwarded } = caller;
        if let (Some(memory), Some(bytes)) = (&slot.memory, bytes) {
            memory.thread(bytes).await?;
        }
        let (agent, principal, trace) = (agent.clone(), principal.clone(), forwarded.trace().cloned());
        let (threads, detached, memory) = (self.clone(), slot.detached.is_some(), slot.memory.clone());
        let mut attempt =
            Box::new(BeginAttempt { threads, key, turn, agent, principal, trace, detached, memory, client, loaded });
        loop {
            // The attempt completes even if the client leaves, because a run that was begun has to be ended.
            let (same, run, lost) = match CompleteOnDrop::new(attempt.begin()).await? {
                BeginResult::Begun(begun) => return Ok(Admission::Begun(begun)),
                BeginResult::Busy { attempt, run, lost } => (attempt, run, lost),
            };
            attempt = same;
            // Maintenance closes lost runs of this process.
            if let Some(lost) = lost.filter(|lost| lost.holder != self.holder) {
                let lost = LostRun { key: attempt.key.clone(), run_id: run.id.clone(), lease: lost };
                match self.recover(lost).await {
                    // `LeaseLost`: another process has closed the run, or the thread was deleted.
                    Ok(true) | Err(StoreError::LeaseLost) => continue,
                    // Another server may be able to go on with it.
                    Ok(false) => {}
                    Err(error) => return Err(error.into()),
                }
            }
            if run.id == attempt.client.rest.run_id {
                return self.follow_or_reject(&attempt.key, *run);
            }
            match self.options.concurrent_runs {
                ConcurrentRuns::Reject => return Err(StartError::ThreadIsBusy),
                ConcurrentRuns::Supersede => {
                    if let Some(shared) = self.store.shared() {
                        shared.request_cancel(run.thread, &run.id).await?;
                    }
                }
                ConcurrentRuns::Queue => {}
            }
            if Instant::now() >= deadline {
                return Err(StartError::QueueFull);
            }
            tokio::select! {
                () = self.wait_for_free_thread(run.thread, poll) => {}
                () = attempt.turn.cancelled() => return Ok(Admission::Cancelled(attempt.client.rest)),
            }
            poll = (poll * 2).min(longest);
            // Another process may have run a request with the same id.
            let same = self
                .store
                .call("run", |store| store.run(&attempt.key.owner, run.thread, &attempt.client.rest.run_id))
                .await?;
            if let Some(same) = same.filter(|same| same.started_at >= asked_at) {
                return self.follow_or_reject(&attempt.key, same);
            }
        }
    }

    fn follow_or_reject(&self, key: &ThreadKey, run: RunRecord) -> Result<Admission, StartError> {
        if !run.detached {
            return Err(StartError::RunIsRunning);
        }
        let permit = self.followers.take(&key.owner).map_err(|_| StartError::TooManyFollowers)?;
        Ok(Admission::Running(Follower::from_stored_run(self, key.clone(), &run, 0, permit)))
    }

    async fn wait_for_free_thread(&self, thread: i64, poll: Duration) {
        match self.store.shared().map(SharedStore::signals).filter(|signals| signals.is_live()) {
            Some(signals) => {
                let mut watch = signals.watch(Topic::Thread(thread));
                let _ = timeout(SLOW_POLL, watch.changed()).await;
            }
            None => sleep(poll).await,
        }
    }
}

struct BeginAttempt {
    threads: Arc<ThreadRuns>,
    key: ThreadKey,
    turn: TurnGuard,
    agent: AgentEntry,
    principal: Option<Principal>,
    /// The place of the request in a trace.
    trace: Option<Arc<TraceContext>>,
    detached: bool,
    memory: Option<RunMemory>,
    client: ClientInput,
    /// The thread as it was last read; `None` if it is assumed to be new.
    loaded: Option<LoadedThread>,
}

enum BeginResult {
    Begun(Box<BegunRun>),
    Busy { attempt: Box<BeginAttempt>, run: Box<RunRecord>, lost: Option<Lease> },
}

impl BeginAttempt {
    /// Plans the run and begins it. While the store says that the thread has changed, reads the thread and tries again.
    async fn begin(mut self: Box<Self>) -> Result<BeginResult, StartError> {
        loop {
            let plan = match self.threads.plan(&self.key, self.loaded.as_ref(), &self.client).await {
                Ok(plan) => plan,
                Err(PlanError::Store(error)) => return Err(error.into()),
                Err(PlanError::Changed) => {
                    self.load().await?;
                    continue;
                }
            };
            let request = self.detached.then(|| {
                let request = StoredRequest::new(&self.client, &plan);
                match self.agent.agent.can_continue() {
                    true => request.with_caller(self.principal.as_ref(), self.trace.as_deref()).to_json(),
                    false => request.to_json(),
                }
            });
            match self.begin_with(&plan, request.as_deref()).await? {
                BeginOutcome::Begun { lease, version, last_message, state_number, replaced } => {
                    if replaced {
                        let (thread, run) = (&self.key.id, &self.client.rest.run_id);
                        // Clients of CopilotKit answer interrupts under the run's id. A repeated request adds nothing.
                        match plan.adds_messages() && self.client.rest.resume.is_empty() {
                            true => tracing::warn!(?thread, ?run, "the run replaces an ended run of the same id"),
                            false => tracing::debug!(?thread, ?run, "the run repeats or continues one of the same id"),
                        }
                    }
                    let Self { threads, key, turn, client, loaded, .. } = *self;
                    if loaded.is_none() {
                        threads.count_new_thread();
                    }
                    threads.publish(&key, ThreadChange::Begun);
                    let head = if plan.adds_messages() { last_message } else { plan.base(loaded.as_ref()) };
                    let open_interrupts = plan.open_interrupts.clone();
                    let guard = LeaseGuard { threads, key, lease, head, open_interrupts, turn: Some(turn) };
                    let request_bytes = request.map_or(0, |request| request.len() as u64);
                    let begun =
                        BegunRun { guard, client, loaded, plan, version, last_message, state_number, request_bytes };
                    return Ok(BeginResult::Begun(Box::new(begun)));
                }
                BeginOutcome::TooLarge(ThreadSize { messages, bytes }) => {
                    return Err(StartError::ThreadTooLarge { messages, bytes });
                }
                BeginOutcome::Busy { run, lost } => {
                    return Ok(BeginResult::Busy { attempt: self, run: Box::new(run), lost });
                }
                BeginOutcome::Changed => self.load().await?,
            }
        }
    }

    /// Reads the thread, when there is room for it.
    async fn load(&mut self) -> Result<(), StartError> {
        self.loaded = None;
        if let Some(memory) = &self.memory
            && let Some(size) = self.threads.size(&self.key).await?
        {
            memory.unread_thread(size).await?;
        }
        self.loaded = self.threads.load(&self.key).await?;
        if let (Some(memory), Some(loaded)) = (&self.memory, &self.loaded) {
            memory.read_thread(loaded.memory_bytes());
        }
        Ok(())
    }

    async fn begin_with(&self, plan: &Plan, request: Option<&str>) -> Result<BeginOutcome, StartError> {
        let Self { threads, client, loaded, .. } = self;
        let branch = plan.branch_write(loaded.as_ref(), &client.messages);
        let (interrupts, answered) = match &plan.resume {
            ResumeDecision::Proceed(answers) => (&[][..], answers.iter().map(|answer| &answer.interrupt_id).collect()),
            _ => (&plan.open_interrupts[..], Vec::new()),
        };
        let title = branch.new.iter().find_map(|(message, _)| title_of(message));
        let now = now();
        let run = NewRun {
            key: &self.key,
            run_id: &client.rest.run_id,
            agent: self.agent.name(),
            detached: self.detached,
            holder: &threads.holder,
            now,
            lease_until: threads.lease_until(now),
            expected: loaded.as_ref().map(|loaded| loaded.version),
            title: title.as_deref(),
            branch,
            state: plan.state.as_ref().filter(|_| plan.state_number.is_none()),
            state_number: plan.state_number,
            interrupts,
            answered,
            request,
            max_size: ThreadSize { messages: threads.options.max_messages, bytes: threads.options.max_bytes },
        };
        Ok(threads.store.call("begin", |store| store.begin(&run)).await?)
    }
}
