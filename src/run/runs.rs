//! [`Runs`]: the agents, limits and stored threads of a server. Drains runs at shutdown.

use std::{sync::Arc, time::Duration};

use tokio::sync::{Semaphore, TryAcquireError};

use super::{
    agents::{AgentEntry, AgentRegistry},
    drive::{
        clock::RunLimits,
        control::{LiveRuns, Stop},
    },
    log::debug_events::DebugEvents,
    measured_store::MeasuredStore,
    options::ThreadOptions,
    thread_runs::{ThreadRuns, owner_of},
    turn::{
        memory::RunMemoryBudget,
        owner_limit::OwnerLimit,
        quota::{PrincipalLimits, Quota},
        slot::Slot,
        start_error::StartError,
    },
};
use crate::{
    agent::{Agent, Principal},
    observe::{metrics::Metrics, recordings::RecordingWriter},
    store::Store,
};

/// The time that clients have to take the last events of runs that were stopped at shutdown. If a run has ended in it, the
/// others get it once more: thousands of runs may need longer together.
const STOPPED_RUN_TIMEOUT: Duration = Duration::from_secs(2);
/// The time limit for all stopped runs together.
const STOPPED_RUNS_TIMEOUT: Duration = Duration::from_secs(10);

/// Starts runs, and drains them at shutdown.
pub(crate) struct Runs {
    pub(super) agents: AgentRegistry,
    pub(super) limits: RunLimits,
    slots: Arc<Semaphore>,
    principal_limits: PrincipalLimits,
    pub(super) quota: Quota,
    memory: Arc<RunMemoryBudget>,
    pub(super) live: Arc<LiveRuns>,
    pub(super) threads: Option<Arc<ThreadRuns>>,
    pub(super) accept_instructions: bool,
    pub(super) metrics: Metrics,
    pub(super) recordings: Option<RecordingWriter>,
    pub(super) records_content: bool,
}

/// Builds [`Runs`].
#[must_use]
pub(crate) struct RunsBuilder {
    agents: AgentRegistry,
    limits: RunLimits,
    principal_limits: PrincipalLimits,
    memory: RunMemoryBudget,
    max_concurrent: usize,
    accept_instructions: bool,
    metrics: Metrics,
    recordings: Option<RecordingWriter>,
    records_content: bool,
}

impl std::fmt::Debug for RunsBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RunsBuilder").field("limits", &self.limits).finish_non_exhaustive()
    }
}

impl RunsBuilder {
    /// Adds an agent. The first one is the default agent unless [`default_agent`](Self::default_agent) names another.
    pub(crate) fn agent(mut self, name: impl Into<Arc<str>>, agent: Arc<dyn Agent>) -> Self {
        self.agents.insert(name.into(), agent);
        self
    }

    /// Sets the agent for requests that name no agent.
    pub(crate) fn default_agent(mut self, name: impl Into<Arc<str>>) -> Self {
        self.agents.set_default(name.into());
        self
    }

    /// Sets the time limits of each run.
    pub(crate) fn limits(mut self, limits: RunLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets the limits of each principal. They have no effect on a server without authentication.
    pub(crate) fn principal_limits(mut self, limits: PrincipalLimits) -> Self {
        self.principal_limits = limits;
        self
    }

    /// Sets the memory that runs may use together; without a limit by default.
    pub(crate) fn memory(mut self, budget: RunMemoryBudget) -> Self {
        self.memory = budget;
        self
    }

    /// Limits the number of concurrent runs.
    pub(crate) fn max_concurrent(mut self, runs: usize) -> Self {
        self.max_concurrent = runs;
        self
    }

    /// Accepts instructions from clients, on a server that stores nothing; on others
    /// [`ThreadOptions::accept_instructions`] decides.
    pub(crate) fn accept_instructions(mut self, accept: bool) -> Self {
        self.accept_instructions = accept;
        self
    }

    /// Counts in these metrics.
    pub(crate) fn metrics(mut self, metrics: Metrics) -> Self {
        self.metrics = metrics;
        self
    }

    /// Records each run.
    pub(crate) fn recordings(mut self, writer: Option<RecordingWriter>) -> Self {
        self.recordings = writer;
        self
    }

    /// Puts messages, arguments and results into the spans of runs.
    pub(crate) fn record_content(mut self, record: bool) -> Self {
        self.records_content = record;
        self
    }

    /// Builds the runs of a server that stores threads.
    pub(crate) fn stored(self, store: Arc<dyn Store>, options: ThreadOptions) -> Arc<Runs> {
        let store = MeasuredStore::new(store, self.metrics.clone());
        let threads = ThreadRuns::new(store, options, self.principal_limits, self.metrics.clone());
        let accept_instructions = threads.options.accept_instructions;
        self.accept_instructions(accept_instructions).build(Some(threads))
    }

    /// Builds the runs of a server that stores nothing.
    pub(crate) fn stateless(self) -> Arc<Runs> {
        self.build(None)
    }

    fn build(self, threads: Option<Arc<ThreadRuns>>) -> Arc<Runs> {
        let runs = Arc::new(Runs {
            agents: self.agents,
            limits: self.limits,
            principal_limits: self.principal_limits,
            slots: Arc::new(Semaphore::new(self.max_concurrent.min(Semaphore::MAX_PERMITS))),
            quota: Quota::new(
                self.principal_limits,
                self.max_concurrent,
                threads.as_ref().map_or(0, |threads| threads.options.max_detached),
            ),
            memory: Arc::new(self.memory),
            live: Arc::default(),
            threads,
            accept_instructions: self.accept_instructions,
            metrics: self.metrics,
            recordings: self.recordings,
            records_content: self.records_content,
        });
        if let Some(threads) = &runs.threads {
            let runs = Arc::downgrade(&runs);
            let _ = threads.recover_run.set(Box::new(move |threads, lost| {
                let runs = runs.upgrade();
                Box::pin(async move {
                    match runs {
                        Some(runs) => runs.recover(&threads, &lost).await,
                        None => Ok(false),
                    }
                })
            }));
        }
        runs
    }
}

impl std::fmt::Debug for Runs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Runs")
            .field("limits", &self.limits)
            .field("live_runs", &self.live_runs())
            .finish_non_exhaustive()
    }
}

impl Runs {
    /// Returns a builder without agents and limits.
    pub(crate) fn builder() -> RunsBuilder {
        RunsBuilder {
            agents: AgentRegistry::default(),
            limits: RunLimits::default(),
            principal_limits: PrincipalLimits::default(),
            memory: RunMemoryBudget::new(usize::MAX, 0, false),
            max_concurrent: usize::MAX,
            accept_instructions: true,
            metrics: Metrics::default(),
            recordings: None,
            records_content: false,
        }
    }

    pub(crate) fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// Returns the metrics, with the numbers of what is under way now.
    pub(crate) fn current_metrics(&self) -> &Metrics {
        let as_gauge = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
        let metrics = &self.metrics.runs;
        let waiting = self.threads.as_ref().map_or(0, |threads| threads.queue.waiting());
        metrics.active.set(as_gauge(self.live_runs().saturating_sub(waiting)));
        metrics.waiting.set(as_gauge(waiting));
        if let Some(threads) = &self.threads {
            let free = threads.detached.available_permits();
            metrics.detached.set(as_gauge(threads.options.max_detached.saturating_sub(free)));
            metrics.thread_event_readers.set(as_gauge(threads.events.readers.readers()));
        }
        &self.metrics
    }

    /// Returns the agent with a name; the default one if `name` is `None`.
    pub(crate) fn agent(&self, name: Option<&str>) -> Option<AgentEntry> {
        self.agents.get(name)
    }

    /// Returns the name of the default agent.
    pub(crate) fn default_agent(&self) -> Option<&str> {
        self.agents.default_name()
    }

    /// Returns all agents in the order they were added.
    pub(crate) fn agents(&self) -> impl Iterator<Item = AgentEntry> + '_ {
        self.agents.iter()
    }

    /// Returns the stored threads; `None` on a server that stores nothing.
    pub(crate) fn thread_runs(&self) -> Option<&Arc<ThreadRuns>> {
        self.threads.as_ref()
    }

    /// Reads the events of a principal's runs in this process as the driver emits them. Without a principal, these are the
    /// runs on a server without authentication. Returns `None` during shutdown.
    pub(crate) fn debug_events(&self, principal: Option<&Principal>) -> Option<DebugEvents> {
        self.live.debug.readers.subscribe(owner_of(principal)).map(|events| DebugEvents { events })
    }

    pub(crate) fn memory(&self) -> &Arc<RunMemoryBudget> {
        &self.memory
    }

    /// Creates a limit of `max` in all, of which a principal has at most its `share_percent`.
    pub(crate) fn owner_limit(&self, max: usize) -> Arc<OwnerLimit> {
        OwnerLimit::new(max, self.principal_limits)
    }

    /// Returns whether new runs are admitted.
    pub(crate) fn is_ready(&self) -> bool {
        !self.slots.is_closed()
    }

    /// Returns the number of runs that have not ended.
    pub(crate) fn live_runs(&self) -> usize {
        self.live.count()
    }

    /// Returns the error that [`reserve`](Self::reserve) would return now, without taking anything: for callers that have
    /// to wait for something before they can use the right.
    ///
    /// # Errors
    /// Those of [`reserve`](Self::reserve).
    pub(crate) fn check_limits(&self, principal: Option<&Principal>) -> Result<(), StartError> {
        if self.slots.is_closed() {
            return Err(StartError::ShuttingDown);
        }
        if self.slots.available_permits() == 0 {
            return Err(StartError::TooManyRuns);
        }
        self.quota.check(principal)
    }

    /// Takes the right to one run, which counts against the limits of the server and of the principal.
    ///
    /// # Errors
    /// [`StartError::TooManyRuns`], [`StartError::ShuttingDown`], [`StartError::TooManyRunsOfPrincipal`] or
    /// [`StartError::TooManyRunsPerMinute`].
    pub(crate) fn reserve(&self, principal: Option<&Principal>) -> Result<Slot, StartError> {
        // First the server's limit, so that a run which it refuses does not count for the principal.
        let permit = self.slots.clone().try_acquire_owned().map_err(|error| match error {
            TryAcquireError::NoPermits => StartError::TooManyRuns,
            TryAcquireError::Closed => StartError::ShuttingDown,
        })?;
        Ok(Slot {
            permit,
            share: self.quota.admit(principal)?,
            detached: None,
            live: self.live.register(),
            memory: None,
        })
    }

    /// Shuts down: refuses new runs, waits up to `grace` for running ones, then stops the others with a terminal event.
    pub(crate) async fn drain(&self, grace: Duration) {
        self.slots.close();
        if let Some(threads) = &self.threads {
            threads.begin_stop();
            threads.events.readers.close();
        }
        self.live.debug.readers.close();
        if tokio::time::timeout(grace, self.live.wait_all_ended()).await.is_ok() {
            return;
        }
        tracing::warn!(runs = self.live.count(), "stopping runs that did not end in time");
        self.live.stop_all(Stop::Shutdown);
        let last_events = async {
            let mut left = usize::MAX;
            while self.live.count() < left {
                left = self.live.count();
                let _ = tokio::time::timeout(STOPPED_RUN_TIMEOUT, self.live.wait_all_ended()).await;
            }
        };
        let _ = tokio::time::timeout(STOPPED_RUNS_TIMEOUT, last_events).await;
        if self.live.count() > 0 {
            tracing::warn!(runs = self.live.count(), "runs ended without their clients reading the end");
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::{Instant, sleep};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_shutdown_waits_for_stopped_runs_as_long_as_some_of_them_end() {
        let runs = Arc::new(Runs::builder().stateless());
        let mut live: Vec<_> = (0..3).map(|_| runs.live.register()).collect();
        let begin = Instant::now();
        let drained = tokio::spawn({
            let runs = runs.clone();
            async move { runs.drain(Duration::ZERO).await }
        });
        for _ in 0..2 {
            sleep(STOPPED_RUN_TIMEOUT * 9 / 10).await;
            live.pop();
        }
        // The third client never reads.
        drained.await.unwrap();
        assert_eq!(begin.elapsed().as_secs(), 6);
        assert_eq!(live.len(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_run_that_is_being_started_is_stopped_at_shutdown_and_waited_for() {
        let runs = Runs::builder().stateless();
        let begin = Instant::now();
        let slot = runs.reserve(None).unwrap();
        let start = async {
            sleep(STOPPED_RUN_TIMEOUT / 2).await;
            assert_eq!(slot.live.control.requested(), Some(Stop::Shutdown));
            drop(slot);
        };
        tokio::join!(runs.drain(Duration::ZERO), start);
        assert_eq!(begin.elapsed(), STOPPED_RUN_TIMEOUT / 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_shutdown_waits_no_longer_than_its_limit() {
        let runs = Arc::new(Runs::builder().stateless());
        let mut live: Vec<_> = (0..100).map(|_| runs.live.register()).collect();
        let begin = Instant::now();
        tokio::select! {
            () = runs.drain(Duration::ZERO) => {}
            () = async { loop { sleep(Duration::from_secs(1)).await; live.pop(); } } => {}
        }
        assert_eq!(begin.elapsed(), STOPPED_RUNS_TIMEOUT);
    }
}
