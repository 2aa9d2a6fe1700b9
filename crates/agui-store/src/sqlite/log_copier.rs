//! Copies the write-ahead log into the file when it is long. A thread of its own copies the first
//! and largest part, which takes the disk a tenth of a second. Operations continue meanwhile, and
//! upkeep waits. Then the writer copies what the operations have added, so that the log is written
//! from its beginning again.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread::{Builder, JoinHandle},
};

use rusqlite::{Connection, hooks::Wal};

use super::{connection::connect, files::DatabaseFiles};
use crate::StoreResult;

pub(super) struct LogCopier {
    /// The pages of the log after the last commit.
    pages: Arc<AtomicU64>,
    files: Arc<DatabaseFiles>,
    copying: Option<JoinHandle<()>>,
}

impl LogCopier {
    /// `conn` is the connection of the writer.
    pub(super) fn new(conn: &mut Connection, files: Arc<DatabaseFiles>) -> io::Result<Self> {
        let pages = Arc::new(AtomicU64::new(0));
        let counted = pages.clone();
        let count = move |_: &mut Wal, pages| {
            counted.store(u64::try_from(pages).unwrap_or_default(), Ordering::Relaxed);
            Ok(())
        };
        conn.wal_hook(Some(count)).map_err(io::Error::other)?;
        Ok(Self { pages, files, copying: None })
    }

    /// Returns whether the thread copies. `false` while only the writer's part is left: on a full
    /// disk the writer does not copy, and the waiting upkeep may be what empties the disk.
    pub(super) fn is_copying(&self) -> bool {
        self.copying.as_ref().is_some_and(|copying| !copying.is_finished())
    }

    /// Begins to copy a log of `max_pages`. Ends the copy when the thread has copied its part, or
    /// when the log is twice as long. Fails if the writer's part fails.
    pub(super) fn copy_when_long(&mut self, conn: &Connection, max_pages: u64) -> StoreResult<()> {
        let pages = self.pages.load(Ordering::Relaxed);
        if pages >= 2 * max_pages || self.copying.as_ref().is_some_and(JoinHandle::is_finished) {
            return self.copy_rest(conn);
        }
        if pages >= max_pages && self.copying.is_none() {
            let files = self.files.clone();
            let copy_most = move || {
                // If this fails, the writer copies all, and reports its own failure.
                if connect(&files.path).is_ok_and(|conn| copy(&conn).is_ok()) {
                    // SQLite syncs only after the copy that lets the log begin again.
                    let _ = files.sync();
                }
            };
            self.copying = Builder::new().name("agui-sqlite-log".to_owned()).spawn(copy_most).ok();
        }
        Ok(())
    }

    /// Copies the rest, after the thread.
    pub(super) fn copy_rest(&mut self, conn: &Connection) -> StoreResult<()> {
        self.wait();
        copy(conn)
    }

    fn wait(&mut self) {
        if let Some(copying) = self.copying.take() {
            // A panic of the thread is in the log, and the writer copies its part.
            let _ = copying.join();
        }
    }
}

impl Drop for LogCopier {
    fn drop(&mut self) {
        self.wait();
    }
}

/// Readers of old pages keep a part in the log.
fn copy(conn: &Connection) -> StoreResult<()> {
    let copied = conn.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()));
    copied
        .inspect_err(|error| tracing::debug!(%error, "the write-ahead log cannot be copied"))
        .map_err(Into::into)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_log_is_copied_beside_operations_and_begins_again() {
        const MAX_PAGES: u64 = 50;
        let folder = tempfile::tempdir().unwrap();
        let files = Arc::new(DatabaseFiles::lock(&folder.path().join("a.db")).unwrap());
        let mut conn = connect(&files.path).unwrap();
        conn.execute_batch(
            "PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0; CREATE TABLE t (body)",
        )
        .unwrap();
        let mut log = LogCopier::new(&mut conn, files).unwrap();
        let (mut pages, mut was_copying) = (Vec::new(), false);
        while pages.len() < 1000 && pages.last() >= pages.iter().rev().nth(1) {
            conn.execute("INSERT INTO t VALUES (randomblob(9000))", []).unwrap();
            pages.push(log.pages.load(Ordering::Relaxed));
            log.copy_when_long(&conn, MAX_PAGES).unwrap();
            if let Some(copying) = &log.copying {
                was_copying = true;
                while !copying.is_finished() {
                    std::thread::yield_now();
                }
                assert!(!log.is_copying(), "upkeep would wait for ever on a full disk");
            }
        }
        let longest = pages.iter().max().unwrap();
        assert!((MAX_PAGES..3 * MAX_PAGES).contains(longest), "{pages:?}");
        assert!(was_copying, "the writer has copied all of it");
        assert!(pages.last().unwrap() < longest, "the log did not begin again: {pages:?}");
        drop(log);
        assert_eq!(
            conn.query_row("SELECT COUNT(*) FROM t", [], |row| row.get::<_, usize>(0)).unwrap(),
            pages.len()
        );
    }
}
