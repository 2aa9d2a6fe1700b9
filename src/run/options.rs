//! Options of stored threads and of the runs on them.

use std::{collections::HashMap, time::Duration};

use serde::Deserialize;
use smart_default::SmartDefault;

use crate::{base::units, files::FileOptions, store::Retention};

/// The section `[threads]`. Fields without a key there are set from `[runs]`, `[retention]` and the agents.
#[derive(Debug, Clone, PartialEq, Deserialize, SmartDefault)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct ThreadOptions {
    /// The effect of a run on a thread that has a running one.
    #[default(ConcurrentRuns::Queue)]
    pub concurrent_runs: ConcurrentRuns,
    /// The largest number of runs that wait on a thread. More are refused with 409.
    #[default(8)]
    pub max_queued: usize,
    /// The longest time that a run waits. Then it is refused with 409.
    #[serde(rename = "queue_timeout_secs", with = "units::Seconds")]
    #[default(Duration::from_secs(30))]
    pub queue_timeout: Duration,
    /// True lets clients give the model instructions: by system and developer messages, and by their context and state.
    /// False refuses such messages with 400, passes none of a thread to its agents, and gives a model context and state
    /// as a part of the user's message. Also holds without stored threads.
    #[default(true)]
    pub accept_instructions: bool,
    /// True sends `MESSAGES_SNAPSHOT` at the beginning of a run to a client that lacks stored messages of its thread.
    #[default(true)]
    pub sync_messages: bool,
    /// The largest thread, with all branches: its messages and states as JSON, in bytes. A run that would exceed it is
    /// refused with 413.
    #[default(64 * 1024 * 1024)]
    pub max_bytes: u64,
    /// The largest number of messages of a thread, on all branches. A run that would exceed it is refused with 413.
    #[default(20_000)]
    pub max_messages: u64,
    /// The agent that makes the title of a new thread after its first run, in the background. Without one, the first
    /// message of a user is the title.
    pub title_agent: Option<String>,
    /// Treatment of a run whose client leaves.
    #[serde(skip)]
    #[default(OnDisconnect::Cancel)]
    pub on_disconnect: OnDisconnect,
    /// The same by agent name, which takes precedence.
    #[serde(skip)]
    pub on_disconnect_of: HashMap<String, OnDisconnect>,
    /// The maximum number of detached runs in this process.
    #[serde(skip)]
    #[default(1000)]
    pub max_detached: usize,
    /// The maximum number of clients in this process that follow detached runs, beside those that started them. A principal
    /// has at most its share, as of concurrent runs ([`PrincipalLimits::share_percent`](crate::run::limits::quota::PrincipalLimits::share_percent)).
    #[serde(skip)]
    #[default(2000)]
    pub max_followers: usize,
    /// The maximum time of a detached run.
    #[serde(skip)]
    #[default(Some(Duration::from_secs(3600)))]
    pub detached_max: Option<Duration>,
    /// How often a detached run goes on after its server was lost. Then it fails with `server_lost`.
    #[serde(skip)]
    #[default(3)]
    pub max_continuations: u32,
    /// The maximum number of bytes that a run adds to its messages and to its log. A run that adds more fails.
    #[serde(skip)]
    #[default(64 * 1024 * 1024)]
    pub max_run_bytes: u64,
    /// The time for which a server leases a thread that it runs, at least 2. The runs of a lost server are
    /// ended after about this time.
    #[serde(rename = "lease_secs", with = "units::Seconds")]
    #[cfg_attr(test, schemars(range(min = 2)))]
    #[default(Duration::from_secs(15))]
    pub lease: Duration,
    /// The limits of files.
    #[serde(skip)]
    pub files: FileOptions,
    /// The limits of what is kept.
    #[serde(skip)]
    #[default(Retention::of_servers())]
    pub retention: Retention,
}

/// The treatment of a run whose thread has a running run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ConcurrentRuns {
    /// It waits for its turn.
    Queue,
    /// It is refused.
    Reject,
    /// The running run is cancelled.
    Supersede,
}

/// The treatment of a run whose client leaves.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum OnDisconnect {
    /// It is cancelled.
    #[default]
    Cancel,
    /// It continues, and can be followed.
    Continue,
}
