//! Options of stored threads and of the runs on them.

use std::{collections::HashMap, time::Duration};

use serde::Deserialize;
use smart_default::SmartDefault;

use agui_agent::files::FileOptions;
use agui_base::units;
use agui_store::Retention;

/// The section `[threads]`. Fields without a key there are set from `[runs]`, `[retention]` and the agents.
#[derive(Debug, Clone, PartialEq, Deserialize, SmartDefault)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct ThreadOptions {
    /// The effect of a run on a thread that has a running one.
    #[default(ConcurrentRuns::Queue)]
    pub concurrent_runs: ConcurrentRuns,
    /// The largest number of queued runs of a thread. More are refused with 409.
    #[default(8)]
    pub max_queued: usize,
    /// The longest time that a run is queued. Then it is refused with 409.
    #[serde(rename = "queue_timeout_secs", with = "units::Seconds")]
    #[default(Duration::from_secs(30))]
    pub queue_timeout: Duration,
    /// True lets clients give the model instructions: in system and developer messages, context and
    /// state. False refuses such messages with 400, removes those of a thread from the input of its
    /// agents, and gives a model context and state as a part of the user's message.
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
    /// The limits of runs.
    #[serde(skip)]
    pub runs: RunOptions,
    /// [`RunOptions::on_disconnect`] by agent name, which takes precedence.
    #[serde(skip)]
    pub on_disconnect_of: HashMap<String, OnDisconnect>,
    /// The time for which a server leases a thread that it runs, at least 2. The runs of a lost server are
    /// ended after about this time.
    #[serde(rename = "lease_secs", with = "units::Seconds")]
    #[cfg_attr(feature = "schema", schemars(range(min = 2)))]
    #[default(Duration::from_secs(15))]
    pub lease: Duration,
    /// The limits of files.
    #[serde(skip)]
    pub files: FileOptions,
    /// The limits of stored data.
    #[serde(skip)]
    #[default(Retention::for_servers())]
    pub retention: Retention,
}

/// Limits of runs: the section `[runs]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, SmartDefault)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct RunOptions {
    /// The largest number of concurrent runs. More are refused with 503.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    #[default(1000)]
    pub max_concurrent: usize,
    /// The time limit of a run that ends with its connection. The run then ends as cancelled.
    #[serde(rename = "max_seconds", with = "units::OptionalSeconds")]
    #[default(Some(Duration::from_secs(600)))]
    pub max: Option<Duration>,
    /// The longest time without an event of the agent. The run then fails (`agent_timeout`).
    #[serde(rename = "idle_seconds", with = "units::OptionalSeconds")]
    #[default(Some(Duration::from_secs(120)))]
    pub idle: Option<Duration>,
    /// The effect of a client that disconnects on its run. A request and an agent can override it.
    pub on_disconnect: OnDisconnect,
    /// The largest number of concurrent detached runs. More are refused with 503. 0: no run can be detached. Without it, the same as
    /// `max_concurrent`.
    pub max_detached: Option<usize>,
    /// The largest number of clients that follow detached runs, beside those that started them. More are refused with
    /// 503.
    #[default(2000)]
    pub max_followers: usize,
    /// The time limit of a detached run, in place of `max_seconds`.
    #[serde(rename = "detached_max_seconds", with = "units::OptionalSeconds")]
    #[default(Some(Duration::from_secs(3600)))]
    pub detached_max: Option<Duration>,
    /// The largest number of times that a detached run is continued, on this server or another,
    /// after its server was lost. Then it fails (`server_lost`). A run that is handed over is not
    /// counted.
    #[default(3)]
    pub max_continuations: u32,
    /// The most that a run may add to its messages and its log, in bytes. A run that exceeds it fails (`run_too_long`).
    #[default(64 * 1024 * 1024)]
    pub max_run_bytes: u64,
    /// The memory of all requests of runs and imports, and of the threads that runs read, in bytes.
    /// A request that gets no permit within five seconds is refused with 503.
    #[default(256 * 1024 * 1024)]
    pub max_memory_bytes: usize,
}

impl RunOptions {
    /// Returns the largest number of concurrent detached runs.
    #[doc(hidden)]
    pub fn max_detached(&self) -> usize {
        self.max_detached.unwrap_or(self.max_concurrent)
    }
}

/// The treatment of a run whose thread has a running run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ConcurrentRuns {
    /// It is queued.
    Queue,
    /// It is refused.
    Reject,
    /// The running run is cancelled.
    Supersede,
}

/// The treatment of a run whose client leaves.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum OnDisconnect {
    /// It is cancelled.
    #[default]
    Cancel,
    /// It continues, and can be followed.
    Continue,
}
