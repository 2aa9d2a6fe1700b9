//! How a run gets to write to its thread: its turn among the runs of this process, then the thread's lease.

use std::{sync::Arc, time::Duration};

use tokio::time::{Instant, sleep, timeout};

use super::{
    ConcurrentRuns, RunRequest, StartError, Threads,
    branch::LoadedThread,
    complete_on_drop::CompleteOnDrop,
    log::Follower,
    plan::{ClientInput, Plan, PlanError},
    queue::{EnterError, TurnGuard},
    resume::ResumeDecision,
};
use crate::{
    protocol::{Interrupt, RunAgentInput, RunId},
    store::{
        BeginOutcome, Lease, NewRun, RunEnd, RunRecord, RunStatus, SharedStore, ThreadKey, ThreadSize, Topic, now,
    },
};

/// How often a thread that another process runs is asked for, at first and at most, while no signals arrive.
const POLL: [Duration; 2] = [Duration::from_millis(25), Duration::from_millis(400)];
/// The same while signals arrive, which can be missed.
const POLL_BESIDE_SIGNALS: Duration = Duration::from_secs(2);

/// The result of asking for a thread.
pub(super) enum Admission {
    /// The run has begun.
    Begun(Box<BegunRun>),
    /// This very run is running in another process, and can be followed.
    Running(Follower),
    /// The run was cancelled before it began.
    Cancelled(RunAgentInput),
}

/// A run that the store has begun.
pub(super) struct BegunRun {
    pub(super) guard: LeaseGuard,
    pub(super) client: ClientInput,
    /// The thread before the run; `None` when the run has made it.
    pub(super) loaded: Option<LoadedThread>,
    pub(super) plan: Plan,
    /// The thread's version, the number of its last message and that of its state, as the run has begun.
    pub(super) version: i64,
    pub(super) last_message: i64,
    pub(super) state_number: Option<i64>,
}

/// The right to write for a run, and its turn. Dropping it ends a run that was never launched.
pub(super) struct LeaseGuard {
    pub(super) threads: Arc<Threads>,
    pub(super) key: ThreadKey,
    pub(super) lease: Lease,
    /// The head of the thread as the run has begun, and the interrupts that were open before.
    head: i64,
    open: Vec<Interrupt>,
    /// Taken when the run is launched.
    turn: Option<TurnGuard>,
}

impl LeaseGuard {
    /// Takes the turn, for the run that is launched.
    pub(super) fn launch(mut self) -> Option<TurnGuard> {
        self.turn.take()
    }
}

impl Drop for LeaseGuard {
    fn drop(&mut self) {
        let Some(turn) = self.turn.take() else { return };
        let (threads, lease, head) = (self.threads.clone(), self.lease.clone(), self.head);
        let open = std::mem::take(&mut self.open);
        // Without a runtime the process is about to end, and the next one closes the run.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        runtime.spawn(async move {
            let end = RunEnd { interrupts: &open, ..RunEnd::new(RunStatus::Cancelled, head) };
            if let Err(error) = threads.store.finish(&lease, &end).await {
                tracing::warn!(?error, "a run that was never launched could not be ended; maintenance closes it");
            }
            drop(turn);
        });
    }
}

impl Threads {
    /// Follows the run of this process that the request asks for again, if it is running and has a log.
    pub(super) fn follow_running(&self, key: &ThreadKey, request: &RunRequest) -> Result<Option<Follower>, StartError> {
        let active = self.queue.active(key).filter(|active| active.run_id == request.input.run_id);
        let Some(active) = active else { return Ok(None) };
        let log = active.log.clone().ok_or(StartError::RunIsRunning)?;
        tracing::info!(thread = ?key.id, run = ?active.run_id, "following a run that is running already");
        Ok(Some(Follower::of_live(self.store.clone(), key.clone(), active.run_id.clone(), log)))
    }

    /// Waits for the turn among the runs of this process on the thread, or for being cancelled.
    pub(super) async fn wait_for_turn(&self, key: &ThreadKey, run_id: &RunId) -> Result<TurnGuard, StartError> {
        let max_waiting = match self.options.concurrent_runs {
            ConcurrentRuns::Reject => 0,
            ConcurrentRuns::Queue | ConcurrentRuns::Supersede => self.options.max_queued,
        };
        let turn = self.queue.enter(key, run_id, max_waiting).map_err(|error| match error {
            // It would wait for itself, and then run twice.
            EnterError::Twice => StartError::RunIsRunning,
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

    /// Begins the run in the store, once no other process has a run on the thread.
    pub(super) async fn admit(
        self: &Arc<Self>,
        key: ThreadKey,
        turn: TurnGuard,
        agent: &str,
        detached: bool,
        client: ClientInput,
    ) -> Result<Admission, StartError> {
        let (deadline, asked_at) = (Instant::now() + self.options.queue_timeout, now());
        let [mut poll, slowest] = POLL;
        let loaded = self.cache.take(&key);
        let (threads, agent) = (self.clone(), agent.to_owned());
        let mut attempt = Box::new(Attempt { threads, key, turn, agent, detached, client, loaded });
        loop {
            // Also when the client leaves in the middle: what the store has begun must be ended.
            let (same, run, lost) = match CompleteOnDrop::new(attempt.begin()).await? {
                Attempted::Begun(begun) => return Ok(Admission::Begun(begun)),
                Attempted::Busy { attempt, run, lost } => (attempt, run, lost),
            };
            attempt = same;
            if let Some(lost) = lost {
                self.recover(&attempt.key, &run.id, &lost).await?;
                continue;
            }
            if run.id == attempt.client.rest.run_id {
                return self.join(&attempt.key, *run);
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
                () = self.thread_may_be_free(run.thread, poll) => {}
                () = attempt.turn.cancelled() => return Ok(Admission::Cancelled(attempt.client.rest)),
            }
            poll = (poll * 2).min(slowest);
            // Another process may have run this very run meanwhile.
            let same = self.store.run(run.thread, &attempt.client.rest.run_id).await?;
            if let Some(same) = same.filter(|same| same.started_at >= asked_at) {
                return self.join(&attempt.key, same);
            }
        }
    }

    fn join(&self, key: &ThreadKey, run: RunRecord) -> Result<Admission, StartError> {
        match run.detached {
            true => Ok(Admission::Running(Follower::of_stored(self.store.clone(), key.clone(), &run, 0))),
            false => Err(StartError::RunIsRunning),
        }
    }

    /// Waits until another process says that the thread's run has ended, or for a while.
    async fn thread_may_be_free(&self, thread: i64, poll: Duration) {
        match self.store.shared().map(SharedStore::signals).filter(|signals| signals.is_live()) {
            Some(signals) => {
                let mut watch = signals.watch(Topic::Thread(thread));
                // After that time the store is asked all the same.
                let _ = timeout(POLL_BESIDE_SIGNALS, watch.changed()).await;
            }
            None => sleep(poll).await,
        }
    }
}

/// A run that asks the store for its thread.
struct Attempt {
    threads: Arc<Threads>,
    key: ThreadKey,
    turn: TurnGuard,
    agent: String,
    detached: bool,
    client: ClientInput,
    /// The thread as it was last seen; `None` when it is taken for a new one.
    loaded: Option<LoadedThread>,
}

enum Attempted {
    Begun(Box<BegunRun>),
    Busy { attempt: Box<Attempt>, run: Box<RunRecord>, lost: Option<Lease> },
}

impl Attempt {
    /// Plans the run on the thread as it is known here, and begins it if the thread is so; if not, reads the thread and
    /// tries again.
    async fn begin(mut self: Box<Self>) -> Result<Attempted, StartError> {
        loop {
            let plan = match self.threads.plan(&self.key, self.loaded.as_ref(), &self.client).await {
                Ok(plan) => plan,
                Err(PlanError::Store(error)) => return Err(error.into()),
                Err(PlanError::Changed) => {
                    self.loaded = self.threads.load(&self.key).await?;
                    continue;
                }
            };
            match self.begin_with(&plan).await? {
                BeginOutcome::Begun { lease, version, last_message, state_number, replaced } => {
                    if replaced {
                        let (thread, run) = (&self.key.id, &self.client.rest.run_id);
                        tracing::warn!(?thread, ?run, "a run with the id of an ended one replaces it");
                    }
                    let Self { threads, key, turn, client, loaded, .. } = *self;
                    if loaded.is_none() {
                        threads.made_thread();
                    }
                    let head = if plan.adds_messages() { last_message } else { plan.base(loaded.as_ref()) };
                    let open = plan.open.clone();
                    let guard = LeaseGuard { threads, key, lease, head, open, turn: Some(turn) };
                    let begun = BegunRun { guard, client, loaded, plan, version, last_message, state_number };
                    return Ok(Attempted::Begun(Box::new(begun)));
                }
                BeginOutcome::TooLarge(ThreadSize { messages, bytes }) => {
                    return Err(StartError::ThreadTooLarge { messages, bytes });
                }
                BeginOutcome::Busy { run, lost } => {
                    return Ok(Attempted::Busy { attempt: self, run: Box::new(run), lost });
                }
                BeginOutcome::Changed => self.loaded = self.threads.load(&self.key).await?,
            }
        }
    }

    async fn begin_with(&self, plan: &Plan) -> Result<BeginOutcome, StartError> {
        let Self { threads, client, loaded, .. } = self;
        let branch = plan.write(loaded.as_ref(), &client.messages);
        let (interrupts, answered) = match &plan.resume {
            ResumeDecision::Proceed(answers) => (&[][..], answers.iter().map(|answer| &answer.interrupt_id).collect()),
            _ => (&plan.open[..], Vec::new()),
        };
        let now = now();
        let run = NewRun {
            key: &self.key,
            run_id: &client.rest.run_id,
            agent: &self.agent,
            detached: self.detached,
            holder: &threads.holder,
            now,
            lease_until: threads.lease_until(now),
            expected: loaded.as_ref().map(|loaded| loaded.version),
            branch,
            state: plan.state.as_ref().filter(|_| plan.state_number.is_none()),
            state_number: plan.state_number,
            interrupts,
            answered,
            max_size: ThreadSize { messages: threads.options.max_messages, bytes: threads.options.max_bytes },
        };
        Ok(threads.store.begin(&run).await?)
    }
}
