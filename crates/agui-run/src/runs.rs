//! [`Runs`]: the agents, limits and stored threads of a server. Drains runs at shutdown.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use smart_default::SmartDefault;

use super::{
    control::{LiveRuns, Stop},
    drive::clock::RunLimits,
    events::{
        debug_events::{DebugEvents, DebugHub},
        tap::{RecordingTap, Taps},
    },
    limits::{
        memory::RunMemoryBudget,
        quota::{PrincipalLimits, RunRate},
    },
    measured_store::MeasuredStore,
    options::ThreadOptions,
    turn::thread_core::ThreadCore,
};
use agui_agent::{
    Agent, BeginDrawing, Principal,
    host::{AgentEntry, AgentRegistry, owner_of},
};
use agui_base::{memory_budget::Sharing, permits::Permits};
use agui_observe::{metrics::Metrics, recordings::RecordingWriter};
use agui_store::{MemoryStore, Store};

/// The time that clients have to read the last events of runs that were stopped at shutdown. It
/// begins again whenever a run has ended in it: thousands of runs may need longer together.
const STOPPED_RUN_TIMEOUT: Duration = Duration::from_secs(2);
/// The time limit for all stopped runs together.
const STOPPED_RUNS_TIMEOUT: Duration = Duration::from_secs(10);

/// Starts runs, and drains them at shutdown.
pub struct Runs {
    pub(super) agents: AgentRegistry,
    pub(super) limits: RunLimits,
    /// True if no new runs are admitted.
    is_closed: AtomicBool,
    pub(super) permits: Arc<Permits>,
    pub(super) rate: RunRate,
    principal_limits: PrincipalLimits,
    /// The memory that runs may use together.
    pub memory: Arc<RunMemoryBudget>,
    pub(super) live: Arc<LiveRuns>,
    inspector: Arc<DebugHub>,
    pub(super) taps: Taps,
    /// The store of the threads, with the queue and the cache of their runs.
    pub threads: Arc<ThreadCore>,
    /// The metrics of the server. [`current_metrics`](Self::current_metrics) updates its gauges.
    pub metrics: Metrics,
    pub(super) recordings: Option<RecordingWriter>,
    pub(super) begin_drawing: Option<BeginDrawing>,
    pub(super) records_content: bool,
}

/// Builds [`Runs`].
#[derive(SmartDefault)]
#[must_use]
pub struct RunsBuilder {
    /// The agents that runs can name, and the default agent.
    pub agents: AgentRegistry,
    /// The store of the threads; a [`MemoryStore`] by default.
    #[default(Arc::new(MemoryStore::new()))]
    pub store: Arc<dyn Store>,
    /// The options of stored threads and detached runs.
    pub threads: ThreadOptions,
    /// The time limits of each run.
    pub limits: RunLimits,
    /// The limits of each principal. They have no effect on a server without authentication.
    pub principal_limits: PrincipalLimits,
    /// The memory that runs may use together.
    #[default(RunMemoryBudget::new(usize::MAX, 0, Sharing::SingleOwner))]
    pub memory: RunMemoryBudget,
    /// The largest number of runs at a time, including queued ones; unlimited by default.
    #[default(usize::MAX)]
    pub max_concurrent: usize,
    /// The metrics of the runs and of the store's calls.
    pub metrics: Metrics,
    /// Records each run.
    pub recordings: Option<RecordingWriter>,
    /// Draws interfaces from the events of runs.
    pub begin_drawing: Option<BeginDrawing>,
    /// Puts messages, arguments and results into the spans of runs.
    pub records_content: bool,
}

impl RunsBuilder {
    /// Adds an agent. The first one is the default agent unless [`AgentRegistry::set_default`] names another.
    pub fn agent(mut self, name: impl Into<Arc<str>>, agent: Arc<dyn Agent>) -> Self {
        self.agents.insert(name.into(), agent);
        self
    }

    /// Builds the runs.
    pub fn build(self) -> Arc<Runs> {
        let store = MeasuredStore::new(self.store, self.metrics.clone());
        let title_agent = self.threads.title_agent.as_deref().and_then(|name| {
            let agent = self.agents.get(Some(name));
            if agent.is_none() {
                tracing::warn!(
                    name,
                    "there is no agent [threads] title_agent; titles are made from messages"
                );
            }
            agent
        });
        let threads = ThreadCore::new(
            store,
            self.threads,
            title_agent,
            self.principal_limits,
            self.metrics.clone(),
        );
        let share = self.principal_limits.share_of(self.max_concurrent);
        let share = self.principal_limits.concurrent.into_iter().chain(share).min();
        let inspector = Arc::new(DebugHub::default());
        let taps: Taps = match self.recordings {
            None => Arc::new([inspector.clone()]),
            Some(_) => Arc::new([inspector.clone(), Arc::new(RecordingTap)]),
        };
        Arc::new(Runs {
            agents: self.agents,
            limits: self.limits,
            is_closed: AtomicBool::new(false),
            permits: Permits::new(self.max_concurrent, share),
            rate: RunRate::new(self.principal_limits.per_minute),
            principal_limits: self.principal_limits,
            memory: Arc::new(self.memory),
            live: Arc::default(),
            inspector,
            taps,
            threads,
            metrics: self.metrics,
            recordings: self.recordings,
            begin_drawing: self.begin_drawing,
            records_content: self.records_content,
        })
    }
}

impl Runs {
    /// Returns a builder without agents and limits.
    pub fn builder() -> RunsBuilder {
        RunsBuilder::default()
    }

    /// Returns the metrics, with the current values of the gauges.
    pub fn current_metrics(&self) -> &Metrics {
        let as_gauge = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
        let metrics = &self.metrics.runs;
        let queued = self.threads.queue.queued();
        metrics.active.set(as_gauge(self.live_runs().saturating_sub(queued)));
        metrics.queued.set(as_gauge(queued));
        metrics.detached.set(as_gauge(self.threads.detached.taken()));
        metrics.thread_event_readers.set(as_gauge(self.threads.events.readers.readers()));
        &self.metrics
    }

    /// Returns the agent with a name; the default one if `name` is `None`.
    pub fn agent(&self, name: Option<&str>) -> Option<AgentEntry> {
        self.agents.get(name)
    }

    /// Returns the name of the default agent.
    pub fn default_agent(&self) -> Option<&str> {
        self.agents.default_name()
    }

    /// Returns all agents in the order they were added.
    pub fn agents(&self) -> impl Iterator<Item = AgentEntry> + '_ {
        self.agents.iter()
    }

    /// Reads the events of a principal's runs in this process as the driver emits them. Without a principal, these are the
    /// runs on a server without authentication. Returns `None` during shutdown.
    pub fn debug_events(&self, principal: Option<&Principal>) -> Option<DebugEvents> {
        self.inspector.readers.subscribe(owner_of(principal)).map(|events| DebugEvents { events })
    }

    /// Creates `max` permits, of which a principal has at most its `share_percent`.
    pub fn shared_permits(&self, max: usize) -> Arc<Permits> {
        Permits::new(max, self.principal_limits.share_of(max))
    }

    /// Returns whether new runs are admitted.
    pub fn is_ready(&self) -> bool {
        !self.is_closed.load(Ordering::Acquire)
    }

    /// Returns the number of runs that have not ended.
    pub fn live_runs(&self) -> usize {
        self.live.count()
    }

    /// Shuts down: refuses new runs, waits up to `grace` for running ones, then stops the others with a terminal event.
    pub async fn drain(&self, grace: Duration) {
        self.is_closed.store(true, Ordering::Release);
        self.threads.begin_stop();
        self.threads.queue.stop_queued();
        self.threads.release_queued().await;
        self.threads.events.readers.close();
        self.inspector.readers.close();
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
            tracing::warn!(
                runs = self.live.count(),
                "runs ended without their clients reading the end"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::{Instant, sleep};

    use super::*;
    use crate::limits::start_error::StartError;

    fn is_full(runs: &Runs, principal: &Principal) -> bool {
        matches!(runs.check_limits(Some(principal)), Err(StartError::TooManyRunsOfPrincipal))
            && matches!(runs.reserve(Some(principal)), Err(StartError::TooManyRunsOfPrincipal))
    }

    #[tokio::test]
    async fn one_principal_gets_half_of_the_runs_by_default_and_at_least_one() {
        let (ada, bob) = (Principal::new("key", "ada"), Principal::new("key", "bob"));
        for (max_concurrent, share) in [(5, 2), (4, 2), (1, 1)] {
            let runs = RunsBuilder { max_concurrent, ..Default::default() }.build();
            let permits: Vec<_> = (0..share).map(|_| runs.reserve(Some(&ada)).unwrap()).collect();
            assert!(max_concurrent == 1 || is_full(&runs, &ada));
            assert_eq!(runs.reserve(Some(&bob)).is_ok(), max_concurrent > 1);
            drop(permits);
            assert!(runs.check_limits(Some(&ada)).is_ok() && runs.reserve(Some(&ada)).is_ok());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_refused_run_does_not_count_for_the_other_limit() {
        let principal_limits =
            PrincipalLimits { concurrent: Some(1), per_minute: Some(2), share_percent: 100 };
        let runs = RunsBuilder { principal_limits, ..Default::default() }.build();
        let ada = Principal::new("key", "ada");
        let first = runs.reserve(Some(&ada)).unwrap();
        for _ in 0..5 {
            assert!(is_full(&runs, &ada));
        }
        drop(first);
        drop(runs.reserve(Some(&ada)).unwrap());
        assert!(matches!(runs.reserve(Some(&ada)), Err(StartError::TooManyRunsPerMinute { .. })));
        sleep(Duration::from_secs(60)).await;
        let held = runs.reserve(Some(&ada)).unwrap();
        assert!(is_full(&runs, &ada), "a refused run took no share");
        drop(held);
    }

    #[tokio::test(start_paused = true)]
    async fn a_shutdown_waits_for_stopped_runs_as_long_as_some_of_them_end() {
        let runs = Runs::builder().build();
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
        let runs = Runs::builder().build();
        let begin = Instant::now();
        let permit = runs.reserve(None).unwrap();
        let start = async {
            sleep(STOPPED_RUN_TIMEOUT / 2).await;
            assert_eq!(permit.live.control.requested(), Some(Stop::Shutdown));
            drop(permit);
        };
        tokio::join!(runs.drain(Duration::ZERO), start);
        assert_eq!(begin.elapsed(), STOPPED_RUN_TIMEOUT / 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_shutdown_waits_no_longer_than_its_limit() {
        let runs = Runs::builder().build();
        let mut live: Vec<_> = (0..100).map(|_| runs.live.register()).collect();
        let begin = Instant::now();
        tokio::select! {
            () = runs.drain(Duration::ZERO) => {}
            () = async { loop { sleep(Duration::from_secs(1)).await; live.pop(); } } => {}
        }
        assert_eq!(begin.elapsed(), STOPPED_RUNS_TIMEOUT);
    }
}
