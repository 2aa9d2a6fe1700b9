//! Empties the write-ahead log, so that no deleted text remains in it.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use super::{connection::connect, files::DatabaseFiles};
use crate::store::StoreError;

const TRUNCATE_INTERVAL: Duration = Duration::from_secs(60);
/// The time that a truncation waits for readers. If they take longer, the next truncation empties the log.
const READERS_TIMEOUT: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) struct WalTruncation {
    files: Arc<DatabaseFiles>,
    last: Mutex<Option<Instant>>,
}

impl WalTruncation {
    pub(super) fn new(files: Arc<DatabaseFiles>) -> Self {
        Self { files, last: Mutex::default() }
    }

    pub(super) async fn run(&self) -> Result<(), StoreError> {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
        let files = self.files.clone();
        let truncated = tokio::task::spawn_blocking(move || {
            let conn = connect(files.path())?;
            conn.busy_timeout(READERS_TIMEOUT)?;
            // PASSIVE copies without blocking the writer, so that TRUNCATE, which blocks it, has little left to copy.
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
