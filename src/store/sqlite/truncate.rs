//! Empties the write-ahead log, so that deleted text does not stay there.

use std::{
    path::PathBuf,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use super::connection::connect;
use crate::store::StoreError;

/// How often a sweep empties the write-ahead log, at most.
const TRUNCATE_INTERVAL: Duration = Duration::from_secs(60);
/// For how long emptying the log waits for readers. If that is too short, the next attempt does it.
const TRUNCATE_PATIENCE: Duration = Duration::from_secs(1);

/// Empties the write-ahead log.
#[derive(Debug)]
pub(super) struct Truncation {
    path: PathBuf,
    last: Mutex<Option<Instant>>,
}

impl Truncation {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path, last: Mutex::default() }
    }

    /// Copies the log into the file and empties it. Readers that are at work can keep it from doing so.
    pub(super) async fn run(&self) -> Result<(), StoreError> {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
        let path = self.path.clone();
        let truncated = tokio::task::spawn_blocking(move || {
            let conn = connect(&path)?;
            conn.busy_timeout(TRUNCATE_PATIENCE)?;
            // The first does the work without keeping writers out, the second has little left to do.
            for mode in ["PASSIVE", "TRUNCATE"] {
                conn.query_row(&format!("PRAGMA wal_checkpoint({mode})"), [], |_| Ok(()))?;
            }
            Ok(())
        });
        truncated.await.unwrap_or_else(|error| Err(StoreError::Failed(error.into())))
    }

    pub(super) fn is_due(&self) -> bool {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        last.is_none_or(|last| last.elapsed() >= TRUNCATE_INTERVAL)
    }
}
