//! Empties the write-ahead log, so that no deleted text remains in it.
//!
//! A truncation is owed from the transaction that deletes something until the log was emptied after
//! the purge. The debt is a row of `agui_owed`, so a killed process leaves it to the next one. A
//! sweep, once a minute, runs owed truncations.

use std::time::Duration;

use rusqlite::Row;

use super::{
    SqliteStore,
    connection::connect,
    reader::one,
    writer::{JobKind, Tx},
};
use crate::{
    StoreError, StoreResult,
    read_permits::{ReadKind, SERVER},
};

/// The time that a truncation waits for readers, and lets writes wait.
const READERS_TIMEOUT: Duration = Duration::from_millis(100);

const OWE: &str = "
    INSERT INTO agui_owed (what, number) VALUES ('truncation', 1) ON CONFLICT (what) DO UPDATE SET number = number + 1";
/// While an unlinked thread or file is not purged, its content is in the file.
const OWED: &str = "
    SELECT number, EXISTS (SELECT 1 FROM agui_threads WHERE owner = '') OR EXISTS (SELECT 1 FROM agui_files WHERE owner = '')
    FROM agui_owed WHERE what = 'truncation'";
const SETTLE: &str = "DELETE FROM agui_owed WHERE what = 'truncation' AND number = ?";

/// Says whether reads that need the log wait for a truncation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ConcurrentReads {
    /// Reads run. If they take longer than [`READERS_TIMEOUT`], the truncation stays owed.
    Proceed,
    /// New reads wait until the running reads have ended and the log is empty. Reads of other
    /// programs do not wait.
    Wait,
}

/// Notes that a truncation is owed, in the transaction that deletes something.
pub(super) fn owe(tx: &Tx<'_>) -> StoreResult<()> {
    tx.execute(OWE, []).map(drop)
}

impl SqliteStore {
    /// Empties the log if a truncation is owed. It stays owed if emptying was not possible.
    pub(super) async fn truncate_log(&self, readers: ConcurrentReads) -> StoreResult<()> {
        // One truncation at a time.
        let Ok(_guard) = self.truncating.try_lock() else { return Ok(()) };
        let owed = |row: &Row<'_>| Ok((row.get::<_, i64>(0)?, row.get::<_, bool>(1)?));
        let owed = self
            .readers
            .read(ReadKind::Page, SERVER, move |conn| one(conn, OWED, [], owed))
            .await?;
        let Some((number, is_purging)) = owed else { return Ok(()) };
        let mut permits = Vec::new();
        if readers == ConcurrentReads::Wait {
            // The longest reads first, so that short reads do not wait for long ones.
            for kind in [ReadKind::Thread, ReadKind::Search, ReadKind::Page] {
                permits.push(self.readers.permits.take_all(kind).await);
            }
        }
        let files = self.files.clone();
        let truncated = tokio::task::spawn_blocking(move || {
            let conn = connect(&files.path)?;
            conn.busy_timeout(READERS_TIMEOUT)?;
            // PASSIVE copies without blocking the writer, so that TRUNCATE, which blocks it, has little left to copy.
            conn.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))?;
            let is_busy: bool =
                conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))?;
            Ok(!is_busy)
        });
        let is_empty =
            truncated.await.unwrap_or_else(|error| Err(StoreError::Failed(error.into())))?;
        drop(permits);
        match (is_empty, readers) {
            (true, _) if is_purging => {}
            (true, _) => {
                self.writer
                    .run(JobKind::Ending, move |tx| tx.execute(SETTLE, [number]).map(drop))
                    .await?;
            }
            (false, ConcurrentReads::Proceed) => {
                tracing::debug!("a reader needs the write-ahead log, which has deleted text")
            }
            (false, ConcurrentReads::Wait) => tracing::warn!(
                "deleted text is still in the write-ahead log, because another program, such as a backup, reads the \
                 database; trying again every minute"
            ),
        }
        Ok(())
    }
}
