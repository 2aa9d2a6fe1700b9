//! Options of stored threads and the runs on them.

use std::{collections::HashMap, time::Duration};

use serde::Deserialize;

use crate::store::Retention;

/// Options of stored threads and the runs on them.
#[derive(Debug, Clone)]
pub struct ThreadOptions {
    /// What happens to a run while another one of its thread is running.
    pub concurrent_runs: ConcurrentRuns,
    /// How many runs may wait for their turn on a thread.
    pub max_queued: usize,
    /// The longest that a run waits.
    pub queue_timeout: Duration,
    /// Whether clients may send system and developer messages.
    pub accept_instructions: bool,
    /// Whether a client that lacks stored messages is sent a `MESSAGES_SNAPSHOT` at the beginning of its run.
    pub sync_messages: bool,
    /// The largest thread, in bytes of messages and states as JSON. A run that would begin on a larger one is refused.
    pub max_bytes: u64,
    /// The largest number of messages of a thread, on all branches.
    pub max_messages: u64,
    /// What happens to a run when its client leaves.
    pub on_disconnect: OnDisconnect,
    /// The same for single agents, by name.
    pub on_disconnect_of: HashMap<String, OnDisconnect>,
    /// How many detached runs this process drives at a time.
    pub max_detached: usize,
    /// The longest that a detached run takes.
    pub detached_max: Option<Duration>,
    /// The most that a run adds to its messages and to its log, in bytes. A run that exceeds it fails.
    pub max_run_bytes: u64,
    /// How long a lease is taken for: the runs of a lost server are closed after about this time.
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
            sync_messages: true,
            max_bytes: 64 * 1024 * 1024,
            max_messages: 20_000,
            on_disconnect: OnDisconnect::Cancel,
            on_disconnect_of: HashMap::new(),
            max_detached: 200,
            detached_max: Some(Duration::from_secs(3600)),
            max_run_bytes: 64 * 1024 * 1024,
            lease: Duration::from_secs(15),
            retention: Retention { owner_threads: Some(100_000), threads: Some(1_000_000), ..Retention::default() },
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnDisconnect {
    /// It is cancelled.
    Cancel,
    /// It goes on, and can be followed.
    Continue,
}
