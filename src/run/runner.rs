//! The agents, and the door to them: which one answers, how many runs there may be, how they end at shutdown.

use std::{sync::Arc, time::Duration};

use indexmap::IndexMap;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::{
    PrincipalLimits, Run, RunLimits,
    control::{Live, Stop},
    quota::{Quota, Share},
};
use crate::{
    agent::{Agent, Principal, RunContext, RunIdentity},
    protocol::{AgentCapabilities, Event, RunAgentInput},
};

/// How long a stopped run's last events may take to reach its client before the server ends without it.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// Knows the agents, admits runs, and drains them at shutdown.
pub struct Runner {
    agents: IndexMap<Arc<str>, Arc<dyn Agent>>,
    default_agent: Option<Arc<str>>,
    limits: RunLimits,
    slots: Arc<Semaphore>,
    quota: Quota,
    live: Arc<Live>,
}

/// Why a run was not started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum StartError {
    /// As many runs as may be are running.
    #[error("the server runs as many agents as it may")]
    Full,
    /// The server is shutting down.
    #[error("the server is shutting down")]
    Draining,
    /// The one who asks has as many runs as one may have.
    #[error("you have as many runs as you may have at a time")]
    TooMany,
    /// The one who asks has asked for as many runs as one may within a minute.
    #[error("you have begun as many runs as you may within a minute")]
    TooOften {
        /// When there may be the next one.
        retry_after: Duration,
    },
}

/// The right to one run. It is held until the run's last byte is sent, or, when the run is detached, until its end is
/// stored.
#[derive(Debug)]
#[allow(dead_code, reason = "held, not read")]
pub struct Slot {
    /// One of the server's runs.
    permit: OwnedSemaphorePermit,
    /// One of its principal's, if those are counted.
    share: Option<Share>,
}

/// An agent and the name it is served under.
#[derive(Clone)]
pub struct AgentEntry {
    name: Arc<str>,
    agent: Arc<dyn Agent>,
}

impl AgentEntry {
    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The same agent by name, which is not asked: the run has these events.
    pub(super) fn stand_in(self, events: Vec<Event>) -> Self {
        let agent = move |_: RunAgentInput, _: RunContext| crate::agent::events(events.clone());
        Self { agent: Arc::new(agent), ..self }
    }

    /// What the agent says about itself.
    pub fn capabilities(&self) -> AgentCapabilities {
        self.agent.capabilities()
    }
}

/// Collects what a [`Runner`] is made of.
pub struct RunnerBuilder {
    agents: IndexMap<Arc<str>, Arc<dyn Agent>>,
    default_agent: Option<Arc<str>>,
    limits: RunLimits,
    principal_limits: PrincipalLimits,
    max_concurrent: usize,
}

impl RunnerBuilder {
    /// Serves an agent under a name. The first one is the default until another is named.
    pub fn agent(mut self, name: impl Into<Arc<str>>, agent: Arc<dyn Agent>) -> Self {
        self.agents.insert(name.into(), agent);
        self
    }

    /// Names the agent that answers when the request names none.
    pub fn default_agent(mut self, name: impl Into<Arc<str>>) -> Self {
        self.default_agent = Some(name.into());
        self
    }

    /// Limits every run.
    pub fn limits(mut self, limits: RunLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Limits what each principal may have. Where nobody is authenticated there are none, and this limits nothing.
    pub fn principal_limits(mut self, limits: PrincipalLimits) -> Self {
        self.principal_limits = limits;
        self
    }

    /// Limits how many runs there may be at a time.
    pub fn max_concurrent(mut self, runs: usize) -> Self {
        self.max_concurrent = runs;
        self
    }

    /// The runner.
    pub fn build(self) -> Runner {
        let default_agent = self.default_agent.or_else(|| self.agents.keys().next().cloned());
        Runner {
            agents: self.agents,
            default_agent,
            limits: self.limits,
            slots: Arc::new(Semaphore::new(self.max_concurrent.min(Semaphore::MAX_PERMITS))),
            quota: Quota::new(self.principal_limits),
            live: Arc::default(),
        }
    }
}

impl Runner {
    /// A runner without agents, to be completed.
    pub fn builder() -> RunnerBuilder {
        RunnerBuilder {
            agents: IndexMap::new(),
            default_agent: None,
            limits: RunLimits::default(),
            principal_limits: PrincipalLimits::default(),
            max_concurrent: usize::MAX,
        }
    }

    /// The agent of a name, or the default one.
    pub fn agent(&self, name: Option<&str>) -> Option<AgentEntry> {
        let (name, agent) = self.agents.get_key_value(name.or(self.default_agent.as_deref())?)?;
        Some(AgentEntry { name: name.clone(), agent: agent.clone() })
    }

    /// The name of the agent that answers when the request names none.
    pub fn default_agent(&self) -> Option<&str> {
        self.default_agent.as_deref()
    }

    /// All agents, in the order they were added.
    pub fn agents(&self) -> impl Iterator<Item = AgentEntry> + '_ {
        self.agents.iter().map(|(name, agent)| AgentEntry { name: name.clone(), agent: agent.clone() })
    }

    /// Whether new runs are admitted.
    pub fn is_ready(&self) -> bool {
        !self.slots.is_closed()
    }

    /// How many runs have not ended.
    pub fn live_runs(&self) -> usize {
        self.live.count()
    }

    /// Asks for the right to one run of nobody in particular.
    ///
    /// # Errors
    /// [`StartError::Full`] when there are as many runs as may be, [`StartError::Draining`] at shutdown.
    pub fn reserve(&self) -> Result<Slot, StartError> {
        self.reserve_for(None)
    }

    /// Asks for the right to one run of a principal, and counts it as one of the principal's.
    ///
    /// # Errors
    /// As [`reserve`](Self::reserve), and [`StartError::TooMany`] or [`StartError::TooOften`] when it is one too many
    /// of the principal's.
    pub fn reserve_for(&self, principal: Option<&Principal>) -> Result<Slot, StartError> {
        use tokio::sync::TryAcquireError;
        // First, for what the server cannot do anyway is not counted against anybody.
        let permit = self.slots.clone().try_acquire_owned().map_err(|error| match error {
            TryAcquireError::NoPermits => StartError::Full,
            TryAcquireError::Closed => StartError::Draining,
        })?;
        Ok(Slot { permit, share: self.quota.admit(principal)? })
    }

    /// What limits every run.
    pub fn limits(&self) -> RunLimits {
        self.limits
    }

    /// Starts a run. Nothing happens until it is polled.
    pub fn start(&self, slot: Slot, agent: AgentEntry, input: RunAgentInput, principal: Option<Principal>) -> Run {
        self.start_within(slot, agent, input, principal, self.limits)
    }

    /// Starts a run with limits of its own.
    pub(super) fn start_within(
        &self,
        slot: Slot,
        agent: AgentEntry,
        input: RunAgentInput,
        principal: Option<Principal>,
        limits: RunLimits,
    ) -> Run {
        let cx = RunContext::new(RunIdentity {
            thread_id: input.thread_id.clone(),
            run_id: input.run_id.clone(),
            agent: agent.name,
            principal,
        });
        Run::new(agent.agent, input, cx, limits, self.live.enter(), slot)
    }

    /// Shuts down: admits no more runs, lets those there are end within `grace`, then stops the rest, each
    /// with its last event.
    pub async fn drain(&self, grace: Duration) {
        self.slots.close();
        if tokio::time::timeout(grace, self.live.ended()).await.is_ok() {
            return;
        }
        tracing::warn!(runs = self.live.count(), "stopping the runs that are left");
        self.live.stop_all(Stop::Shutdown);
        if tokio::time::timeout(LAST_WORDS, self.live.ended()).await.is_err() {
            tracing::warn!(runs = self.live.count(), "some clients did not take the end of their run");
        }
    }
}
