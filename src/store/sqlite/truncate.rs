//! Empties the write-ahead log, so that no deleted text remains in it.

use std::time::{Duration, Instant};

use super::{SqliteStore, connection::connect};
use crate::store::{StoreError, StoreResult};

const TRUNCATE_INTERVAL: Duration = Duration::from_secs(60);
/// The time that a truncation waits for readers, and lets writes wait. If they take longer, the next truncation empties the log.
const READERS_TIMEOUT: Duration = Duration::from_millis(100);

impl SqliteStore {
    pub(super) async fn truncate_log(&self) -> StoreResult<()> {
        *self.truncated.lock() = Some(Instant::now());
        let files = self.files.clone();
        let truncated = tokio::task::spawn_blocking(move || {
            let conn = connect(&files.path)?;
            conn.busy_timeout(READERS_TIMEOUT)?;
            // PASSIVE copies without blocking the writer, so that TRUNCATE, which blocks it, has little left to copy.
            for mode in ["PASSIVE", "TRUNCATE"] {
                conn.query_row(&format!("PRAGMA wal_checkpoint({mode})"), [], |_| Ok(()))?;
            }
            Ok(())
        });
        truncated.await.unwrap_or_else(|error| Err(StoreError::Failed(error.into())))
    }

    pub(super) fn is_truncation_due(&self) -> bool {
        let last = self.truncated.lock();
        last.is_none_or(|last| last.elapsed() >= TRUNCATE_INTERVAL)
    }
}
