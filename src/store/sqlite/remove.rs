//! Deletes threads and logs.
//!
//! A deleted thread is first *unlinked*: one small write removes its key, so that no lookup finds it. Its rows are then
//! purged in steps of a few milliseconds, so that runs which begin or end meanwhile do not wait. A purge that the end of
//! the process interrupts continues with the next sweep.
//!
//! No deleted text remains in the files: pages are overwritten (`secure_delete`), the write-ahead log is emptied, and free
//! pages are returned to the file system.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use rusqlite::{OptionalExtension as _, params};

use super::{SqliteStore, search, writer::Tx};
use crate::store::{Millis, Retention, StoreError, SweepResult, retention::surplus};

/// The time that one step of a purge occupies the writer.
const PURGE_STEP: Duration = Duration::from_millis(4);
const MAX_UNLINKED: u64 = 200;
const MAX_PURGED_ROWS: i64 = 20;
const MAX_DELETED_LOGS: usize = 20;

const UNLINK: &str = "UPDATE agui_threads SET former_owner = owner, owner = '', id = number, holder = NULL WHERE number = ?1 AND owner <> ''";
const UNLINK_IDLE: &str = "
    UPDATE agui_threads SET former_owner = owner, owner = '', id = number WHERE number IN (
        SELECT number FROM agui_threads WHERE owner = ?1 AND holder IS NULL ORDER BY run LIMIT ?2)";
const UNLINK_OLD: &str = "
    UPDATE agui_threads SET former_owner = owner, owner = '', id = number WHERE number IN (
        SELECT number FROM agui_threads WHERE owner <> '' AND holder IS NULL AND updated_at < ?1 LIMIT ?2)";

const OWNERS: &str = "SELECT owner, COUNT(*) FROM agui_threads WHERE owner <> '' GROUP BY owner";

const FIND_UNLINKED: &str = "SELECT number FROM agui_threads WHERE owner = '' LIMIT 1";
/// Each statement deletes some rows of a thread, the last one the thread itself.
const PURGE: [&str; 6] = [
    "DELETE FROM agui_events WHERE (run, last) IN (SELECT e.run, e.last FROM agui_runs AS r
        JOIN agui_events AS e ON e.run = r.number WHERE r.thread = ?1 LIMIT ?2)",
    "DELETE FROM agui_run_starts WHERE run IN (SELECT s.run FROM agui_runs AS r
        JOIN agui_run_starts AS s ON s.run = r.number WHERE r.thread = ?1 LIMIT ?2)",
    "DELETE FROM agui_messages WHERE thread = ?1 AND number IN
        (SELECT number FROM agui_messages WHERE thread = ?1 LIMIT ?2)",
    "DELETE FROM agui_states WHERE thread = ?1 AND number IN
        (SELECT number FROM agui_states WHERE thread = ?1 LIMIT ?2)",
    "DELETE FROM agui_runs WHERE number IN (SELECT number FROM agui_runs WHERE thread = ?1 LIMIT ?2)",
    "DELETE FROM agui_threads WHERE number = ?1 AND ?2 > 0",
];

const OLD_LOGS: &str = "
    SELECT number FROM agui_runs WHERE has_log = 1 AND ended_at < ?1 ORDER BY ended_at LIMIT ?2";
const SURPLUS_LOGS: &str = "
    SELECT number FROM agui_runs WHERE has_log = 1 ORDER BY ended_at DESC LIMIT ?2 OFFSET ?1";
const DELETE_LOG: &str = "DELETE FROM agui_events WHERE run = ?1";
const DELETE_START: &str = "DELETE FROM agui_run_starts WHERE run = ?1";
const CLEAR_HAS_LOG: &str = "UPDATE agui_runs SET has_log = 0 WHERE number = ?1";

impl SqliteStore {
    pub(super) async fn delete_thread(&self, thread: i64) -> Result<bool, StoreError> {
        let existed = self.writer.write(move |tx| Ok(tx.conn.prepare_cached(UNLINK)?.execute([thread])? > 0)).await?;
        if existed {
            self.purge().await?;
            self.truncation.run().await?;
        }
        Ok(existed)
    }

    pub(super) async fn remove_surplus(&self, retention: &Retention, now: Millis) -> Result<SweepResult, StoreError> {
        let mut swept = SweepResult::default();
        if let Some(oldest) = retention.thread_age.and_then(|age| now.checked_sub_unsigned(age)) {
            swept.threads += self.unlink(UNLINK_OLD, oldest, u64::MAX).await?;
        }
        for (owner, surplus) in self.surplus_of_owners(retention).await? {
            swept.threads += self.unlink(UNLINK_IDLE, owner, surplus).await?;
        }
        let logs = self.surplus_logs(retention, now).await?;
        swept.logs = logs.len() as u64;
        for some in logs.chunks(MAX_DELETED_LOGS) {
            let some = some.to_vec();
            self.writer.write(move |tx| some.iter().try_for_each(|run| delete_log(tx, *run))).await?;
        }
        self.purge().await?;
        if swept != SweepResult::default() && self.truncation.is_due() {
            self.truncation.run().await?;
        }
        Ok(swept)
    }

    async fn unlink<P>(&self, sql: &'static str, filter: P, count: u64) -> Result<u64, StoreError>
    where
        P: rusqlite::ToSql + Clone + Send + 'static,
    {
        let mut unlinked = 0;
        while unlinked < count {
            let (filter, limit) = (filter.clone(), (count - unlinked).min(MAX_UNLINKED));
            let done = self
                .writer
                .write(move |tx| Ok(tx.conn.prepare_cached(sql)?.execute(params![filter, limit as i64])? as u64));
            let done = done.await?;
            unlinked += done;
            if done < limit {
                break;
            }
        }
        Ok(unlinked)
    }

    async fn surplus_of_owners(&self, retention: &Retention) -> Result<HashMap<String, u64>, StoreError> {
        let (each, total) = (retention.owner_threads, retention.threads);
        if each.is_none() && total.is_none() {
            return Ok(HashMap::new());
        }
        let owners = self.readers.read(|conn| {
            let mut select = conn.prepare_cached(OWNERS)?;
            let owners = select.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
            Ok(owners.collect::<Result<Vec<(String, u64)>, _>>()?)
        });
        Ok(surplus(owners.await?, each, total))
    }

    async fn surplus_logs(&self, retention: &Retention, now: Millis) -> Result<Vec<i64>, StoreError> {
        let oldest = retention.log_age.and_then(|age| now.checked_sub_unsigned(age));
        let count = retention.logs.map(|count| i64::try_from(count).unwrap_or(i64::MAX));
        let bounds = [(OLD_LOGS, oldest), (SURPLUS_LOGS, count)];
        self.readers
            .read(move |conn| {
                let mut logs = Vec::new();
                for (sql, bound) in bounds {
                    let Some(bound) = bound else { continue };
                    let mut select = conn.prepare_cached(sql)?;
                    let found = select.query_map([bound, -1], |row| row.get(0))?;
                    logs.extend(found.collect::<Result<Vec<i64>, _>>()?);
                }
                logs.sort_unstable();
                logs.dedup();
                Ok(logs)
            })
            .await
    }

    async fn purge(&self) -> Result<(), StoreError> {
        while self.writer.write(purge_step).await? {}
        while self.writer.write(vacuum_step).await? {}
        Ok(())
    }
}

fn delete_log(tx: &Tx<'_>, run: i64) -> Result<(), StoreError> {
    tx.conn.prepare_cached(DELETE_LOG)?.execute([run])?;
    tx.conn.prepare_cached(DELETE_START)?.execute([run])?;
    tx.conn.prepare_cached(CLEAR_HAS_LOG)?.execute([run])?;
    Ok(())
}

/// Deletes rows for the time of [`PURGE_STEP`]. Returns whether there may be more.
fn purge_step(tx: &mut Tx<'_>) -> Result<bool, StoreError> {
    let begin = Instant::now();
    while begin.elapsed() < PURGE_STEP {
        let thread = tx.conn.prepare_cached(FIND_UNLINKED)?.query_row([], |row| row.get::<_, i64>(0)).optional()?;
        let Some(thread) = thread else { return Ok(false) };
        // The index is updated with the words of the messages, so they are deleted later.
        if search::remove_one(tx, thread)? {
            continue;
        }
        for sql in PURGE {
            if tx.conn.prepare_cached(sql)?.execute([thread, MAX_PURGED_ROWS])? as i64 == MAX_PURGED_ROWS {
                break;
            }
        }
    }
    Ok(true)
}

/// Returns up to 200 free pages to the file system. Returns whether there are more.
fn vacuum_step(tx: &mut Tx<'_>) -> Result<bool, StoreError> {
    let mut vacuum = tx.conn.prepare("PRAGMA incremental_vacuum(200)")?;
    let mut pages = vacuum.query([])?;
    while pages.next()?.is_some() {}
    let free: i64 = tx.conn.query_row("PRAGMA freelist_count", [], |row| row.get(0))?;
    Ok(free > 0)
}
