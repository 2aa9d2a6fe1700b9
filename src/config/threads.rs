//! What can be set about stored threads.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use serde::Deserialize;

/// Where threads are kept.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Store {
    /// `memory:`, `sqlite:PATH` or `postgres://…`; may hold a password.
    pub url: String,
}

/// Where threads are kept, read.
#[derive(Debug, PartialEq, Eq)]
pub enum StoreUrl<'a> {
    /// In the process, and gone with it.
    Memory,
    /// In a file.
    Sqlite(PathBuf),
    /// In a database that several servers share.
    Postgres(&'a str),
}

/// How runs share a thread.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Threads {
    /// What happens to a run while another one of its thread is running.
    pub concurrent_runs: ConcurrentRuns,
    /// How many runs may wait on a thread.
    pub max_queued: usize,
    /// The longest one may wait.
    pub queue_timeout_secs: u64,
    /// Whether clients may send system and developer messages.
    pub accept_instructions: bool,
    /// Whether a client that lacks stored messages is sent them at the beginning of its run.
    pub sync_messages: bool,
    /// The largest thread, in bytes of messages and states as JSON.
    pub max_bytes: u64,
    /// The largest number of messages of a thread.
    pub max_messages: u64,
    /// How soon a server counts as lost that does not answer for its runs.
    pub lease_secs: u64,
}

/// What is kept, and for how long. 0 keeps everything.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Retention {
    /// For how many days a thread is kept after its last run.
    pub thread_days: u64,
    /// How many threads of each owner are kept.
    pub max_threads: u64,
    /// How many threads of all owners are kept.
    pub max_threads_total: u64,
    /// For how many hours the log of a run is kept after its end.
    pub log_hours: u64,
    /// How many logs of ended runs are kept.
    pub max_logs: u64,
}

/// What happens to a run while another one of its thread is running.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
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

impl Store {
    /// The address, read; a relative path is one within the data folder.
    ///
    /// # Errors
    /// What is wrong with it, without the address itself: it may hold a password.
    pub fn read(&self, data_dir: &Path) -> Result<StoreUrl<'_>, &'static str> {
        if self.url == "memory:" {
            return Ok(StoreUrl::Memory);
        }
        if let Some(path) = self.url.strip_prefix("sqlite:") {
            let path = path.strip_prefix("//").unwrap_or(path);
            return match path {
                "" => Err("\"sqlite:\" needs the path of a file"),
                path => Ok(StoreUrl::Sqlite(data_dir.join(path))),
            };
        }
        if self.url.starts_with("postgres://") || self.url.starts_with("postgresql://") {
            return Ok(StoreUrl::Postgres(&self.url));
        }
        Err("expected \"memory:\", \"sqlite:PATH\" or \"postgres://…\"")
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = self.url.split(':').next().unwrap_or_default();
        f.debug_struct("Store").field("url", &format_args!("{scheme}:…")).finish()
    }
}

impl Default for Store {
    fn default() -> Self {
        Self { url: "sqlite:agui-server.sqlite".to_owned() }
    }
}

impl Default for Threads {
    fn default() -> Self {
        Self {
            concurrent_runs: ConcurrentRuns::Queue,
            max_queued: 8,
            queue_timeout_secs: 30,
            accept_instructions: true,
            sync_messages: true,
            max_bytes: 64 * 1024 * 1024,
            max_messages: 20_000,
            lease_secs: 15,
        }
    }
}

impl Default for Retention {
    fn default() -> Self {
        Self { thread_days: 0, max_threads: 100_000, max_threads_total: 1_000_000, log_hours: 24, max_logs: 10_000 }
    }
}
