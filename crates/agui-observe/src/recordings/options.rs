//! The options of recordings.

use std::path::PathBuf;

use serde::Deserialize;
use smart_default::SmartDefault;

/// Recordings of runs: the section `[record]`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, SmartDefault)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct RecordOptions {
    /// The folder in which each run is written as a file of JSON Lines: what the agent was given,
    /// its events with their times, and the exchanges with model providers (docs/recordings.md). A
    /// relative path starts in the folder in which the server is started. Also by the flag
    /// `--record`. If not set, nothing is recorded.
    pub dir: Option<PathBuf>,
    /// The largest recording, in bytes. The rest of its run is left out.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    #[default(16 * 1024 * 1024)]
    pub max_file_bytes: u64,
    /// The largest number of recordings in the folder. The oldest are removed; copy those that you
    /// want to keep.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    #[default(1000)]
    pub max_files: usize,
    /// The largest size of all recordings in the folder, in bytes. The oldest are removed.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    #[default(256 * 1024 * 1024)]
    pub max_folder_bytes: u64,
    /// The request headers that are recorded, in lower case. Headers with credentials cannot be recorded.
    pub headers: Vec<String>,
    /// True records the requests to model providers and their answers, without keys.
    #[default(true)]
    pub exchanges: bool,
}

impl RecordOptions {
    /// Records into a folder, with the default limits.
    pub fn to(dir: impl Into<PathBuf>) -> Self {
        Self { dir: Some(dir.into()), ..Self::default() }
    }
}
