//! The options of recordings.

use std::path::PathBuf;

use serde::Deserialize;

/// The section `[record]`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct RecordOptions {
    /// The folder of the recordings. `None` records nothing. Removes the oldest recordings in it when it is full.
    pub dir: Option<PathBuf>,
    /// The largest recording, in bytes. The events after it are left out.
    pub max_file_bytes: u64,
    /// The largest number of recordings in the folder.
    pub max_files: usize,
    /// The largest size of all recordings in the folder, in bytes.
    pub max_folder_bytes: u64,
    /// The request headers that are recorded, in lower case.
    pub headers: Vec<String>,
    /// Records requests to model providers and their answers.
    pub exchanges: bool,
}

impl Default for RecordOptions {
    fn default() -> Self {
        Self {
            dir: None,
            max_file_bytes: 16 * 1024 * 1024,
            max_files: 1000,
            max_folder_bytes: 256 * 1024 * 1024,
            headers: Vec::new(),
            exchanges: true,
        }
    }
}

impl RecordOptions {
    /// Records into a folder, with the default limits.
    pub fn to(dir: impl Into<PathBuf>) -> Self {
        Self { dir: Some(dir.into()), ..Self::default() }
    }
}
