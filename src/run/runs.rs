//! What runs share: the agents, the limits, and the stored threads.

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

/// For how long a stopped run's last events may take to reach its client before the server ends without it.
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

/// Collects what [`Runs`] is made of.
#[must_use]
pub struct RunsBuilder {
    agents: AgentRegistry,
    limits: RunLimits,
    principal_limits: PrincipalLimits,
    max_concurrent: usize,
}

impl RunsBuilder {
    /// Serves an agent under a name. The first one is the default until another is named.
    pub fn agent(mut self, name: impl Into<Arc<str>>, agent: Arc<dyn Agent>) -> Self {
        self.agents.insert(name.into(), agent);
        self
    }

    /// Names the agent that answers when the request names none.
    pub fn default_agent(mut self, name: impl Into<Arc<str>>) -> Self {
        self.agents.set_default(name.into());
        self
    }

    /// Limits every run.
    pub fn limits(mut self, limits: RunLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Limits each principal. On a server without authentication there are no principals, and this limits nothing.
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

impl Runs {
    /// Begins to collect agents and limits.
    pub fn builder() -> RunsBuilder {
        RunsBuilder {
            agents: AgentRegistry::default(),
            limits: RunLimits::default(),
            principal_limits: PrincipalLimits::default(),
            max_concurrent: usize::MAX,
        }
    }

    /// The agent of a name, or the default one.
    pub fn agent(&self, name: Option<&str>) -> Option<AgentEntry> {
        self.agents.get(name)
    }

    /// The name of the agent that answers when the request names none.
    pub fn default_agent(&self) -> Option<&str> {
        self.agents.default_name()
    }

    /// All agents, in the order they were added.
    pub fn agents(&self) -> impl Iterator<Item = AgentEntry> + '_ {
        self.agents.iter()
    }

    /// The stored threads; `None` on a server that stores nothing.
    pub fn threads(&self) -> Option<&Arc<Threads>> {
        self.threads.as_ref()
    }

    /// Returns whether new runs are admitted.
    pub fn is_ready(&self) -> bool {
        !self.slots.is_closed()
    }

    /// The number of runs that have not ended.
    pub fn live_runs(&self) -> usize {
        self.live.count()
    }

    /// Takes the right to one run, and counts it as one of the principal's.
    ///
    /// # Errors
    /// [`StartError::TooManyRuns`], [`StartError::ShuttingDown`], [`StartError::TooManyRunsOfPrincipal`] or
    /// [`StartError::TooManyRunsPerMinute`].
    pub fn reserve(&self, principal: Option<&Principal>) -> Result<Slot, StartError> {
        // The server's limit first: what it cannot do anyway is not counted against the principal.
        let permit = self.slots.clone().try_acquire_owned().map_err(|error| match error {
            TryAcquireError::NoPermits => StartError::TooManyRuns,
            TryAcquireError::Closed => StartError::ShuttingDown,
        })?;
        Ok(Slot { permit, share: self.quota.admit(principal)?, detached: None })
    }

    /// Shuts down: admits no more runs, lets running ones end within `grace`, then stops the others, each with its
    /// terminal event.
    pub async fn drain(&self, grace: Duration) {
        self.slots.close();
        if tokio::time::timeout(grace, self.live.ended()).await.is_ok() {
            return;
        }
        tracing::warn!(runs = self.live.count(), "stopping the runs that are left");
        self.live.stop_all(Stop::Shutdown);
        if tokio::time::timeout(STOPPED_RUN_TIMEOUT, self.live.ended()).await.is_err() {
            tracing::warn!(runs = self.live.count(), "some clients did not take the end of their run");
        }
    }
}
