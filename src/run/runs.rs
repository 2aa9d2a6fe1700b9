//! [`Runs`]: the agents, limits and stored threads of a server. Drains runs at shutdown.

use std::{sync::Arc, time::Duration};

use tokio::sync::{Semaphore, TryAcquireError};

use super::{
    AgentEntry, PrincipalLimits, RunLimits, Slot, StartError, ThreadOptions, Threads,
    agents::AgentRegistry,
    control::{LiveRuns, Stop},
    quota::Quota,
};
use crate::{
    agent::{Agent, Principal},
    store::Store,
};

/// The time that clients have to take the last events of runs that were stopped at shutdown.
const STOPPED_RUN_TIMEOUT: Duration = Duration::from_secs(2);

/// Starts runs, and drains them at shutdown.
pub struct Runs {
    pub(super) agents: AgentRegistry,
    pub(super) limits: RunLimits,
    slots: Arc<Semaphore>,
    quota: Quota,
    pub(super) live: Arc<LiveRuns>,
    pub(super) threads: Option<Arc<Threads>>,
}

/// Builds [`Runs`].
#[must_use]
pub struct RunsBuilder {
    agents: AgentRegistry,
    limits: RunLimits,
    principal_limits: PrincipalLimits,
    max_concurrent: usize,
}

impl std::fmt::Debug for RunsBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RunsBuilder").field("limits", &self.limits).finish_non_exhaustive()
    }
}

impl RunsBuilder {
    /// Adds an agent. The first one is the default agent unless [`default_agent`](Self::default_agent) names another.
    pub fn agent(mut self, name: impl Into<Arc<str>>, agent: Arc<dyn Agent>) -> Self {
        self.agents.insert(name.into(), agent);
        self
    }

    /// Sets the agent for requests that name no agent.
    pub fn default_agent(mut self, name: impl Into<Arc<str>>) -> Self {
        self.agents.set_default(name.into());
        self
    }

    /// Sets the time limits of each run.
    pub fn limits(mut self, limits: RunLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets the limits of each principal. They have no effect on a server without authentication.
    pub fn principal_limits(mut self, limits: PrincipalLimits) -> Self {
        self.principal_limits = limits;
        self
    }

    /// Limits the number of concurrent runs.
    pub fn max_concurrent(mut self, runs: usize) -> Self {
        self.max_concurrent = runs;
        self
    }

    /// Builds the runs of a server that stores threads.
    pub fn stored(self, store: Arc<dyn Store>, options: ThreadOptions) -> Arc<Runs> {
        self.build(Some(Threads::new(store, options)))
    }

    /// Builds the runs of a server that stores nothing.
    pub fn stateless(self) -> Arc<Runs> {
        self.build(None)
    }

    fn build(self, threads: Option<Arc<Threads>>) -> Arc<Runs> {
        Arc::new(Runs {
            agents: self.agents,
            limits: self.limits,
            slots: Arc::new(Semaphore::new(self.max_concurrent.min(Semaphore::MAX_PERMITS))),
            quota: Quota::new(self.principal_limits),
            live: Arc::default(),
            threads,
        })
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
    pub fn builder() -> RunsBuilder {
        RunsBuilder {
            agents: AgentRegistry::default(),
            limits: RunLimits::default(),
            principal_limits: PrincipalLimits::default(),
            max_concurrent: usize::MAX,
        }
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

    /// Returns the stored threads; `None` on a server that stores nothing.
    pub fn threads(&self) -> Option<&Arc<Threads>> {
        self.threads.as_ref()
    }

    /// Returns whether new runs are admitted.
    pub fn is_ready(&self) -> bool {
        !self.slots.is_closed()
    }

    /// Returns the number of runs that have not ended.
    pub fn live_runs(&self) -> usize {
        self.live.count()
    }

    /// Takes the right to one run, which counts against the limits of the server and of the principal.
    ///
    /// # Errors
    /// [`StartError::TooManyRuns`], [`StartError::ShuttingDown`], [`StartError::TooManyRunsOfPrincipal`] or
    /// [`StartError::TooManyRunsPerMinute`].
    pub fn reserve(&self, principal: Option<&Principal>) -> Result<Slot, StartError> {
        // First the server's limit, so that a run which it refuses does not count for the principal.
        let permit = self.slots.clone().try_acquire_owned().map_err(|error| match error {
            TryAcquireError::NoPermits => StartError::TooManyRuns,
            TryAcquireError::Closed => StartError::ShuttingDown,
        })?;
        Ok(Slot { permit, share: self.quota.admit(principal)?, detached: None })
    }

    /// Shuts down: refuses new runs, waits up to `grace` for running ones, then stops the others with a terminal event.
    pub async fn drain(&self, grace: Duration) {
        self.slots.close();
        if tokio::time::timeout(grace, self.live.wait_all_ended()).await.is_ok() {
            return;
        }
        tracing::warn!(runs = self.live.count(), "stopping runs that did not end in time");
        self.live.stop_all(Stop::Shutdown);
        if tokio::time::timeout(STOPPED_RUN_TIMEOUT, self.live.wait_all_ended()).await.is_err() {
            tracing::warn!(runs = self.live.count(), "runs ended without their clients reading the end");
        }
    }
}
