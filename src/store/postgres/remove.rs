//! Deletes threads and logs. Several processes may do so at the same time.

use sqlx::{Row as _, postgres::PgRow};

use super::{Database, pool::Statement};
use crate::store::{Millis, Retention, StoreError, SweepResult, retention::surplus};

const MAX_DELETED_THREADS: u64 = 200;
const MAX_DELETED_LOGS: usize = 50;

/// Locks threads in the order of their numbers. With `$2`, threads with a running run are skipped.
const LOCK: &str = "
    SELECT number FROM agui_threads WHERE number = ANY($1::bigint[]) AND NOT ($2 AND holder IS NOT NULL)
    ORDER BY number FOR UPDATE";
const DELETE: &str = include_str!("sql/delete.sql");

const OLD_THREADS: &str = "
    SELECT number FROM agui_threads WHERE holder IS NULL AND updated_at < $1 LIMIT $2";
const OLDEST_THREADS_OF_OWNER: &str = "
    SELECT number FROM agui_threads WHERE owner = $1 AND holder IS NULL ORDER BY run LIMIT $2";
const OWNERS: &str = "SELECT owner, COUNT(*) FROM agui_threads GROUP BY owner";

const OLD_LOGS: &str = "SELECT number FROM agui_runs WHERE has_log AND ended_at < $1";
const SURPLUS_LOGS: &str = "SELECT number FROM agui_runs WHERE has_log ORDER BY ended_at DESC OFFSET $1";
const DELETE_LOGS: &str = "
    WITH log AS (UPDATE agui_runs SET has_log = FALSE WHERE number = ANY($1::bigint[]) AND has_log RETURNING number),
    deleted AS (DELETE FROM agui_events USING log WHERE run = log.number),
    starts AS (DELETE FROM agui_run_starts USING log WHERE run = log.number)
    SELECT COUNT(*) FROM log";

impl Database {
    pub(super) async fn delete(&self, thread: i64) -> Result<bool, StoreError> {
        Ok(self.delete_threads(&[thread], false).await? > 0)
    }

    pub(super) async fn sweep(&self, retention: &Retention, now: Millis) -> Result<SweepResult, StoreError> {
        let mut swept = SweepResult::default();
        if let Some(oldest) = retention.thread_age.and_then(|age| now.checked_sub_unsigned(age)) {
            swept.threads +=
                self.delete_found(u64::MAX, |limit| sqlx::query(OLD_THREADS).bind(oldest).bind(limit)).await?;
        }
        let (each, total) = (retention.owner_threads, retention.threads);
        if each.is_some() || total.is_some() {
            let owners = self.all(sqlx::query(OWNERS)).await?;
            let owner = |row: &PgRow| Ok((row.try_get(0)?, row.try_get::<i64, _>(1)?.cast_unsigned()));
            let owners = owners.iter().map(owner).collect::<Result<Vec<(String, u64)>, StoreError>>()?;
            for (owner, count) in surplus(owners, each, total) {
                let find = |limit| sqlx::query(OLDEST_THREADS_OF_OWNER).bind(owner.clone()).bind(limit);
                swept.threads += self.delete_found(count, find).await?;
            }
        }
        if let Some(oldest) = retention.log_age.and_then(|age| now.checked_sub_unsigned(age)) {
            swept.logs += self.delete_logs(sqlx::query(OLD_LOGS).bind(oldest)).await?;
        }
        if let Some(count) = retention.logs {
            let count = i64::try_from(count).unwrap_or(i64::MAX);
            swept.logs += self.delete_logs(sqlx::query(SURPLUS_LOGS).bind(count)).await?;
        }
        Ok(swept)
    }

    async fn delete_found(&self, count: u64, find: impl Fn(i64) -> Statement<'static>) -> Result<u64, StoreError> {
        let mut deleted = 0;
        while deleted < count {
            let limit = (count - deleted).min(MAX_DELETED_THREADS);
            let found = numbers(&self.all(find(limit.cast_signed())).await?)?;
            let done = self.delete_threads(&found, true).await?;
            deleted += done;
            if done < limit {
                break;
            }
        }
        Ok(deleted)
    }

    async fn delete_threads(&self, threads: &[i64], only_idle: bool) -> Result<u64, StoreError> {
        if threads.is_empty() {
            return Ok(0);
        }
        let mut operation = self.operation().await?;
        operation.begin("BEGIN").await?;
        let locked = numbers(&operation.all(sqlx::query(LOCK).bind(threads).bind(only_idle)).await?)?;
        let deleted = operation.first(sqlx::query(DELETE).bind(locked)).await?;
        operation.commit().await?;
        count(deleted.as_ref())
    }

    async fn delete_logs(&self, find: Statement<'_>) -> Result<u64, StoreError> {
        let mut deleted = 0;
        for some in numbers(&self.all(find).await?)?.chunks(MAX_DELETED_LOGS) {
            deleted += count(self.first(sqlx::query(DELETE_LOGS).bind(some)).await?.as_ref())?;
        }
        Ok(deleted)
    }
}

fn numbers(rows: &[PgRow]) -> Result<Vec<i64>, StoreError> {
    rows.iter().map(|row| Ok(row.try_get(0)?)).collect()
}

fn count(row: Option<&PgRow>) -> Result<u64, StoreError> {
    Ok(row.map_or(Ok(0), |row| row.try_get::<i64, _>(0))?.cast_unsigned())
}
