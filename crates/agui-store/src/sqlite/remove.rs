//! Deletes threads and logs.
//!
//! A deleted thread is first *unlinked*: one small write removes its key, so that no lookup finds it. Its rows are then
//! purged in steps of a few milliseconds, so that runs which begin or end meanwhile do not wait. A purge that the end of
//! the process interrupts continues with the next sweep.
//!
//! No deleted text remains in the files: pages are overwritten (`secure_delete`), and the write-ahead log is emptied
//! ([`truncate`]), at the latest by the next sweep. A sweep returns free pages to the file system.

use std::collections::HashMap;

use rusqlite::Connection;

use super::{
    SqliteStore, events, file_rows,
    reader::{all, one},
    search,
    truncate::{self, ConcurrentReads},
    writer::{JobKind, Tx, for_one_step},
};
use crate::{
    Millis, Retention, RunNumber, StoreResult, SweepResult, ThreadNumber,
    read_permits::{ReadKind, SERVER},
    retention::surplus,
    rows,
};

const MAX_UNLINKED: u64 = 200;
const MAX_PURGED_ROWS: i64 = 20;
const MAX_UNLINKED_LOGS: usize = 20;
/// The logs that are deleted together. Each page has events of many logs.
const MAX_PURGED_LOGS: i64 = 200;
/// The events that are deleted in one step of a few milliseconds.
const MAX_PURGED_BATCHES: usize = 500;

const UNLINK: &str = "
    UPDATE agui_threads SET former_owner = owner, owner = '', id = number, run = -number, holder = NULL
    WHERE number = ?1 AND owner IS NOT '' RETURNING former_owner";
const UNLINK_ALL: &str = "
    UPDATE agui_threads SET former_owner = owner, owner = '', id = number, run = -number, holder = NULL
    WHERE number IN (SELECT number FROM agui_threads WHERE owner = ?1 LIMIT ?2)";
const UNLINK_IDLE: &str = "
    UPDATE agui_threads SET former_owner = owner, owner = '', id = number, run = -number WHERE number IN (
        SELECT number FROM agui_threads WHERE owner = ?1 AND holder IS NULL ORDER BY run LIMIT ?2)";
const UNLINK_OLD: &str = "
    UPDATE agui_threads SET former_owner = owner, owner = '', id = number, run = -number WHERE number IN (
        SELECT number FROM agui_threads WHERE owner <> '' AND holder IS NULL AND updated_at < ?1 LIMIT ?2)";

const UNLINK_FILES: &str = "
    UPDATE agui_files SET owner = '', id = number, digest = '', name = NULL, stored = 0, unused_since = NULL
    WHERE number IN (SELECT number FROM agui_files WHERE owner = ?1 AND owner <> '' LIMIT ?2)";

const OWNERS: &str = "SELECT owner, COUNT(*) FROM agui_threads WHERE owner <> '' AND typeof(owner) = 'text' GROUP BY owner";

const FIND_UNLINKED: &str = "SELECT number FROM agui_threads WHERE owner = '' LIMIT 1";
const IS_UNLINKED: &str = "SELECT number FROM agui_threads WHERE owner = '' AND number = ?";
/// Each statement deletes some rows of a thread, the last one the thread itself.
const PURGE: [&str; 6] = [
    "DELETE FROM agui_run_starts WHERE run IN (SELECT s.run FROM agui_runs AS r
        JOIN agui_run_starts AS s ON s.run = r.number WHERE r.thread = ?1 LIMIT ?2)",
    "DELETE FROM agui_queued_runs WHERE number IN
        (SELECT number FROM agui_queued_runs WHERE thread = ?1 LIMIT ?2)",
    "DELETE FROM agui_messages WHERE thread = ?1 AND number IN
        (SELECT number FROM agui_messages WHERE thread = ?1 LIMIT ?2)",
    "DELETE FROM agui_states WHERE thread = ?1 AND number IN
        (SELECT number FROM agui_states WHERE thread = ?1 LIMIT ?2)",
    "DELETE FROM agui_runs WHERE number IN (SELECT number FROM agui_runs WHERE thread = ?1 LIMIT ?2)",
    "DELETE FROM agui_threads WHERE number = ?1 AND ?2 > 0",
];

const OLD_LOGS: &str = "
    SELECT number FROM agui_runs WHERE has_log = 1 AND ended_at < ? ORDER BY ended_at";
const SURPLUS_LOGS: &str = "
    SELECT number FROM agui_runs WHERE has_log = 1 ORDER BY ended_at DESC LIMIT -1 OFFSET ?";
/// The events of a log are deleted later.
const UNLINK_LOG: [&str; 2] = [
    "DELETE FROM agui_run_starts WHERE run = ?",
    "UPDATE agui_runs SET has_log = 0 WHERE number = ?",
];
const LOGS_OF_THREAD: &str = "
    SELECT e.run FROM agui_runs AS r JOIN agui_log_ends AS e ON e.run = r.number WHERE r.thread = ?1 LIMIT ?2";
const UNLINKED_LOGS: &str = include_str!("sql/unlinked_logs.sql");

impl SqliteStore {
    pub(super) async fn delete_thread(&self, thread: ThreadNumber) -> StoreResult<bool> {
        let unlink = move |tx: &mut Tx<'_>| {
            let owner = one(tx.conn, UNLINK, [thread], |row| {
                Ok(rows::text(row, "former_owner")?.to_owned())
            })?;
            owner.map(|owner| truncate::owe(tx).map(|()| owner)).transpose()
        };
        let Some(owner) = self.writer.run(JobKind::Ending, unlink).await? else { return Ok(false) };
        let removed = async {
            self.purge_logs(LOGS_OF_THREAD, thread).await?;
            self.keep_up(JobKind::Purging, &owner, move |tx| purge_step(tx, Some(thread))).await?;
            self.truncate_log(ConcurrentReads::Proceed).await
        };
        left_to_sweep(removed.await);
        Ok(true)
    }

    pub(super) async fn delete_threads_of(&self, owner: &str) -> StoreResult<u64> {
        let deleted = self.unlink(UNLINK_ALL, owner.to_owned(), u64::MAX).await?;
        self.unlink(UNLINK_FILES, owner.to_owned(), u64::MAX).await?;
        let removed = async {
            self.purge().await?;
            self.truncate_log(ConcurrentReads::Proceed).await
        };
        left_to_sweep(removed.await);
        Ok(deleted)
    }

    pub(super) async fn remove_surplus(
        &self,
        retention: &Retention,
        now: Millis,
    ) -> StoreResult<SweepResult> {
        let mut swept = SweepResult::default();
        if let Some(oldest) = retention.thread_age.and_then(|age| now.checked_sub_unsigned(age)) {
            swept.threads += self.unlink(UNLINK_OLD, oldest, u64::MAX).await?;
        }
        for (owner, surplus) in self.surplus_of_owners(retention).await? {
            swept.threads += self.unlink(UNLINK_IDLE, owner, surplus).await?;
        }
        let oldest = retention.log_age.and_then(|age| now.checked_sub_unsigned(age));
        let count = retention.logs.map(|count| i64::try_from(count).unwrap_or(i64::MAX));
        for (sql, bound) in [(OLD_LOGS, oldest), (SURPLUS_LOGS, count)] {
            if let Some(bound) = bound {
                swept.logs += self.unlink_logs(sql, bound).await?;
            }
        }
        self.purge().await?;
        self.truncate_log(ConcurrentReads::Wait).await?;
        Ok(swept)
    }

    pub(super) async fn unlink<P>(
        &self,
        sql: &'static str,
        filter: P,
        count: u64,
    ) -> StoreResult<u64>
    where
        P: rusqlite::ToSql + Clone + Send + 'static,
    {
        let mut unlinked = 0;
        while unlinked < count {
            let (filter, limit) = (filter.clone(), (count - unlinked).min(MAX_UNLINKED));
            let unlink = move |tx: &mut Tx<'_>| {
                let count = tx.execute(sql, (&filter, limit as i64))? as u64;
                if count > 0 {
                    truncate::owe(tx)?;
                }
                Ok(count)
            };
            let done = self.writer.run(JobKind::Ending, unlink).await?;
            unlinked += done;
            if done < limit {
                break;
            }
        }
        Ok(unlinked)
    }

    async fn surplus_of_owners(&self, retention: &Retention) -> StoreResult<HashMap<String, u64>> {
        let (each, total) = (retention.owner_threads, retention.threads);
        if each.is_none() && total.is_none() {
            return Ok(HashMap::new());
        }
        let owners = self.readers.read(ReadKind::Page, SERVER, |conn| {
            all(conn, OWNERS, [], |row| Ok((row.get(0)?, row.get(1)?)))
        });
        Ok(surplus(owners.await?, each, total))
    }

    async fn unlink_logs(&self, sql: &'static str, bound: i64) -> StoreResult<u64> {
        let find =
            move |conn: &Connection| all(conn, sql, [bound], |row| Ok(row.get::<_, RunNumber>(0)?));
        let logs = self.readers.read(ReadKind::Page, SERVER, find).await?;
        for some in logs.chunks(MAX_UNLINKED_LOGS) {
            let some = some.to_vec();
            let unlink = |tx: &Tx<'_>, run| {
                UNLINK_LOG.iter().try_for_each(|sql| tx.execute(sql, [run]).map(drop))
            };
            let unlink_some = move |tx: &mut Tx<'_>| {
                some.iter().try_for_each(|run| unlink(tx, *run))?;
                truncate::owe(tx)
            };
            self.writer.run(JobKind::Ending, unlink_some).await?;
        }
        Ok(logs.len() as u64)
    }

    /// Deletes the events of logs that a statement finds, in the order of time, so that each page
    /// is changed about once. If the process ends meanwhile, the remaining events are found again
    /// from the ends of the logs.
    async fn purge_logs(&self, sql: &'static str, thread: ThreadNumber) -> StoreResult<()> {
        loop {
            let find = move |conn: &Connection| {
                let runs = all(conn, sql, (thread, MAX_PURGED_LOGS), |row| {
                    Ok(row.get::<_, RunNumber>(0)?)
                })?;
                Ok((events::rows_of(conn, &runs)?, runs))
            };
            let (rows, runs) = self.readers.read(ReadKind::Thread, SERVER, find).await?;
            if runs.is_empty() {
                return Ok(());
            }
            for some in rows.chunks(MAX_PURGED_BATCHES).map(<[_]>::to_vec) {
                self.writer.run(JobKind::Purging, move |tx| events::delete_rows(tx, &some)).await?;
            }
            self.writer.run(JobKind::Purging, move |tx| events::delete_ends(tx, &runs)).await?;
        }
    }

    async fn purge(&self) -> StoreResult<()> {
        self.purge_logs(UNLINKED_LOGS, ThreadNumber::default()).await?;
        self.keep_up(JobKind::Purging, SERVER, |tx| purge_step(tx, None)).await?;
        self.keep_up(JobKind::Purging, SERVER, file_rows::purge_step).await?;
        self.keep_up(JobKind::Purging, SERVER, vacuum_step).await
    }
}

/// The thread counts as deleted once it is unlinked. The database remembers the remaining work.
pub(super) fn left_to_sweep(removed: StoreResult<()>) {
    if let Err(error) = removed {
        tracing::warn!(
            ?error,
            "the rows of something deleted could not be removed; the next sweep tries again"
        );
    }
}

/// Deletes rows of a thread, or of all unlinked threads, for the time of a step. Returns whether
/// there may be more.
fn purge_step(tx: &Tx<'_>, only: Option<ThreadNumber>) -> StoreResult<bool> {
    for_one_step(|_| {
        let found = match only {
            Some(thread) => {
                one(tx.conn, IS_UNLINKED, [thread], |row| Ok(row.get::<_, ThreadNumber>(0)?))?
            }
            None => one(tx.conn, FIND_UNLINKED, [], |row| Ok(row.get(0)?))?,
        };
        let Some(thread) = found else { return Ok(false) };
        // The index is updated with the words of the messages, so they are deleted later.
        if search::remove_one(tx, thread)? || file_rows::release_some(tx, thread)? {
            return Ok(true);
        }
        for sql in PURGE {
            if tx.execute(sql, (thread, MAX_PURGED_ROWS))? as i64 == MAX_PURGED_ROWS {
                break;
            }
        }
        Ok(true)
    })
}

/// Returns up to 200 free pages to the file system. Returns whether there may be more. A file that SQLite has created without
/// `auto_vacuum`, such as one restored from a dump, keeps its free pages.
fn vacuum_step(tx: &Tx<'_>) -> StoreResult<bool> {
    let free_pages = || tx.conn.query_row("PRAGMA freelist_count", [], |row| row.get::<_, i64>(0));
    let before = free_pages()?;
    let mut vacuum = tx.conn.prepare("PRAGMA incremental_vacuum(200)")?;
    let mut pages = vacuum.query([])?;
    while pages.next()?.is_some() {}
    let after = free_pages()?;
    if after < before {
        // The file becomes smaller when the log is copied into it.
        truncate::owe(tx)?;
    }
    Ok((1..before).contains(&after))
}
