//! Options of stored threads and of the runs on them.

use std::{collections::HashMap, time::Duration};

use serde::Deserialize;
use smart_default::SmartDefault;

use agui_agent::files::{FileOptions, MAX_LOADED_BYTES};
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
    /// True lets clients give the model instructions: by system and developer messages, and by
    /// their context and state. False refuses requests with such messages with 400, passes none of
    /// a thread to its agents, and gives a model context and state as a part of the user's message.
    /// A remote agent gets context and state, and decides by itself.
    #[default(true)]
    pub accept_instructions: bool,
    /// True sends `MESSAGES_SNAPSHOT` at the beginning of a run to a client that lacks stored
    /// messages of its thread, such as a page that sends only its new message, or one that did not
    /// receive its last response.
    #[default(true)]
    pub sync_messages: bool,
    /// The largest thread, with all branches: its messages and states as JSON, in bytes. A run that
    /// would exceed it is refused with 413 (`thread_too_large`).
    #[default(64 * 1024 * 1024)]
    pub max_bytes: u64,
    /// The largest number of messages of a thread, on all branches. A run that would exceed it is
    /// refused with 413 (`thread_too_large`).
    #[default(20_000)]
    pub max_messages: u64,
    /// The agent that makes the title of a new thread after its first run, in the background: the
    /// name of an agent with a small model. Without one, the first message of a user is the title.
    pub title_agent: Option<String>,
    /// The limits of runs.
    #[serde(skip)]
    pub runs: RunOptions,
    /// [`RunOptions::on_disconnect`] by agent name, which takes precedence.
    #[serde(skip)]
    pub on_disconnect_of: HashMap<String, OnDisconnect>,
    /// The time for which a server leases a thread that it runs, at least 2. It renews a lease
    /// three times in that time. If it does not, other servers end its run. The clocks of servers
    /// that share a store must agree to within about a second.
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
    /// The effect of a client that disconnects on its run. A request can override it with
    /// `forwardedProps.onDisconnect`, and an agent with its own `on_disconnect`.
    pub on_disconnect: OnDisconnect,
    /// The largest number of concurrent detached runs. More are refused with 503. 0: no run can be detached. Without it, the same as
    /// `max_concurrent`.
    pub max_detached: Option<usize>,
    /// The largest number of clients that follow detached runs, or wait for their events, beside
    /// those that started them. More are refused with 503. `share_percent` of `[limits]` applies.
    /// Each takes at most about 150 KiB of memory.
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
    /// The most that a run may add to its messages and its log, in bytes, which are in memory until
    /// they are stored. A run that exceeds it fails (`run_too_long`).
    #[default(64 * 1024 * 1024)]
    pub max_run_bytes: u64,
    /// The memory of the requests of running runs and of imports, of the threads that runs read,
    /// and of forks, in bytes, together. Two of the largest requests always fit. A request takes
    /// twice the bytes of its body, and 130 for each JSON value in it, or 490 in an open member
    /// such as the state; a fork takes three times its thread. A quarter is for what takes up to 64
    /// KiB. With several principals, each gets at most half. A request without a permit after five
    /// seconds is refused with 503 (`too_many_run_bytes`).
    #[default(256 * 1024 * 1024)]
    pub max_memory_bytes: usize,
}

impl ThreadOptions {
    /// The size of the largest export of a thread as JSON, in bytes: its messages and states, the newest files as base64, and what an
    /// export adds to each message, such as its run.
    #[doc(hidden)]
    pub fn max_export_bytes(&self) -> usize {
        let added = self.max_messages.saturating_add(1024).saturating_mul(1024);
        let files = MAX_LOADED_BYTES.div_ceil(3) * 4;
        let bytes = self.max_bytes.saturating_add(added).saturating_add(files);
        usize::try_from(bytes).unwrap_or(usize::MAX)
    }
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
    /// It is refused with 409.
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
    /// It is cancelled, and so is the agent's work.
    #[default]
    Cancel,
    /// It continues (a detached run), and can be followed at `/threads/{thread}/runs/{run}/events`.
    Continue,
}
