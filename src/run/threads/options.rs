//! What can be set about threads and the runs on them.

use std::{collections::HashMap, time::Duration};

use super::Threads;
use crate::store::Retention;

/// What can be set about threads and the runs on them.
#[derive(Debug, Clone)]
pub struct ThreadOptions {
    /// What happens to a run while another one of its thread is running.
    pub concurrent_runs: ConcurrentRuns,
    /// How many runs may wait for their turn on a thread.
    pub max_queued: usize,
    /// The longest one may wait.
    pub queue_timeout: Duration,
    /// Whether clients may send system and developer messages.
    pub accept_instructions: bool,
    /// What happens to a run when its client leaves.
    pub on_disconnect: OnDisconnect,
    /// The same for single agents, by name.
    pub on_disconnect_of: HashMap<String, OnDisconnect>,
    /// How many detached runs there may be at a time in this process.
    pub max_detached: usize,
    /// The longest a detached run may take.
    pub detached_max: Option<Duration>,
    /// The most that a run may make of its messages and its log, in bytes. A run that has more to say fails.
    pub max_run_bytes: u64,
    /// How long a lease is taken for: after a server is lost, its runs are closed within about this time.
    pub lease: Duration,
    /// What is kept, and for how long.
    pub retention: Retention,
}

impl Default for ThreadOptions {
    fn default() -> Self {
        Self {
            concurrent_runs: ConcurrentRuns::Queue,
            max_queued: 8,
            queue_timeout: Duration::from_secs(30),
            accept_instructions: true,
            on_disconnect: OnDisconnect::Cancel,
            on_disconnect_of: HashMap::new(),
            max_detached: 200,
            detached_max: Some(Duration::from_secs(3600)),
            max_run_bytes: 64 * 1024 * 1024,
            lease: Duration::from_secs(15),
            retention: Retention { threads: Some(100_000), ..Retention::default() },
        }
    }
}

/// What happens to a run while another one of its thread is running.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConcurrentRuns {
    /// It waits for its turn.
    Queue,
    /// It is refused.
    Reject,
    /// The other one is cancelled.
    Supersede,
}

/// What happens to a run when its client leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnDisconnect {
    /// It is cancelled.
    Cancel,
    /// It goes on, and can be followed.
    Continue,
}

impl Threads {
    /// What is set to happen to an agent's runs when their client leaves, if that is set for this agent alone.
    pub fn on_disconnect_of(&self, agent: &str) -> Option<OnDisconnect> {
        self.options.on_disconnect_of.get(agent).copied()
    }
}
