//! Deletes threads and logs. Several processes may do so at the same time.

use sqlx::{Row as _, postgres::PgRow};

use super::pool::{PostgresPool, Statement};
use crate::{
    Millis, Retention, RunNumber, StoreResult, SweepResult, ThreadNumber, retention::surplus,
};

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
const THREADS_OF_OWNER: &str = "SELECT number FROM agui_threads WHERE owner = $1 LIMIT $2";
const OWNERS: &str =
    "SELECT owner, COUNT(*) FROM agui_threads WHERE owner IS NOT NULL GROUP BY owner";

const OLD_LOGS: &str = "SELECT number FROM agui_runs WHERE has_log AND ended_at < $1";
const SURPLUS_LOGS: &str =
    "SELECT number FROM agui_runs WHERE has_log ORDER BY ended_at DESC OFFSET $1";
const DELETE_LOGS: &str = include_str!("sql/delete_logs.sql");

/// Other servers notice the loss of a run's lease when they write for it.
pub(super) async fn delete_all(pool: &PostgresPool, owner: &str) -> StoreResult<u64> {
    let find = |limit| sqlx::query(THREADS_OF_OWNER).bind(owner.to_owned()).bind(limit);
    delete_found(pool, u64::MAX, false, find).await
}

pub(super) async fn sweep(
    pool: &PostgresPool,
    retention: &Retention,
    now: Millis,
) -> StoreResult<SweepResult> {
    let mut swept = SweepResult::default();
    if let Some(oldest) = retention.thread_age.and_then(|age| now.checked_sub_unsigned(age)) {
        swept.threads += delete_found(pool, u64::MAX, true, |limit| {
            sqlx::query(OLD_THREADS).bind(oldest).bind(limit)
        })
        .await?;
    }
    let (each, total) = (retention.owner_threads, retention.threads);
    if each.is_some() || total.is_some() {
        let owners = pool.all(sqlx::query(OWNERS)).await?;
        let owner = |row: &PgRow| Ok((row.try_get(0)?, row.try_get::<i64, _>(1)?.cast_unsigned()));
        let owners = owners.iter().map(owner).collect::<StoreResult<Vec<(String, u64)>>>()?;
        for (owner, count) in surplus(owners, each, total) {
            let find = |limit| sqlx::query(OLDEST_THREADS_OF_OWNER).bind(owner.clone()).bind(limit);
            swept.threads += delete_found(pool, count, true, find).await?;
        }
    }
    if let Some(oldest) = retention.log_age.and_then(|age| now.checked_sub_unsigned(age)) {
        swept.logs += delete_logs(pool, sqlx::query(OLD_LOGS).bind(oldest)).await?;
    }
    if let Some(count) = retention.logs {
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        swept.logs += delete_logs(pool, sqlx::query(SURPLUS_LOGS).bind(count)).await?;
    }
    Ok(swept)
}

async fn delete_found(
    pool: &PostgresPool,
    count: u64,
    only_idle: bool,
    find: impl Fn(i64) -> Statement<'static>,
) -> StoreResult<u64> {
    let mut deleted = 0;
    while deleted < count {
        let limit = (count - deleted).min(MAX_DELETED_THREADS);
        let found = numbers(&pool.all(find(limit.cast_signed())).await?)?;
        let done = delete_threads(pool, &found, only_idle).await?;
        deleted += done;
        if done < limit {
            break;
        }
    }
    Ok(deleted)
}

pub(super) async fn delete_threads(
    pool: &PostgresPool,
    threads: &[ThreadNumber],
    only_idle: bool,
) -> StoreResult<u64> {
    if threads.is_empty() {
        return Ok(0);
    }
    let mut operation = pool.operation().await?;
    operation.begin("BEGIN").await?;
    let locked: Vec<ThreadNumber> =
        numbers(&operation.all(sqlx::query(LOCK).bind(threads).bind(only_idle)).await?)?;
    let deleted = operation.first(sqlx::query(DELETE).bind(locked)).await?;
    operation.commit().await?;
    count(deleted.as_ref())
}

async fn delete_logs(pool: &PostgresPool, find: Statement<'_>) -> StoreResult<u64> {
    let mut deleted = 0;
    let logs: Vec<RunNumber> = numbers(&pool.all(find).await?)?;
    for some in logs.chunks(MAX_DELETED_LOGS) {
        deleted += count(pool.first(sqlx::query(DELETE_LOGS).bind(some)).await?.as_ref())?;
    }
    Ok(deleted)
}

fn numbers<N: From<i64>>(rows: &[PgRow]) -> StoreResult<Vec<N>> {
    rows.iter().map(|row| Ok(row.try_get::<i64, _>(0)?.into())).collect()
}

fn count(row: Option<&PgRow>) -> StoreResult<u64> {
    Ok(row.map_or(Ok(0), |row| row.try_get::<i64, _>(0))?.cast_unsigned())
}
