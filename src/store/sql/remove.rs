//! Removes threads and logs.
//!
//! What is outdated goes in small transactions, so that runs that begin or end meanwhile wait a moment only, and
//! in limited number a call: what is left goes with the next one.

use sqlx::{AnyConnection, Row as _};

use super::{Sql, connect::Work, error::Fault, key, rows::number};
use crate::{
    protocol::ThreadId,
    store::{Millis, Pruned, Retention, StoreError},
};

/// How many threads or logs a transaction removes.
const STEP: i64 = 200;

/// How many transactions of each kind a call makes.
const STEPS: usize = 25;

const DELETE: &str = "DELETE FROM agui_threads WHERE thread_key = $1 RETURNING thread_number";

/// What a thread's row leaves behind.
const REST: [&str; 3] = [
    "DELETE FROM agui_log WHERE run_number IN (SELECT run_number FROM agui_runs WHERE thread_number = $1)",
    "DELETE FROM agui_runs WHERE thread_number = $1",
    "DELETE FROM agui_contents WHERE thread_number = $1",
];

/// The conditions are there twice: where threads are chosen, and where the chosen ones are locked, for a run may
/// have begun in between.
const PRUNE_THREADS: &str = "\
    DELETE FROM agui_threads WHERE thread_number IN (\
        SELECT thread_number FROM agui_threads WHERE holder IS NULL AND (updated_at < $1 \
        OR updated_at < $2 OR (updated_at = $2 AND thread_number <= $3)) ORDER BY updated_at, thread_number LIMIT $4\
    ) AND holder IS NULL AND (updated_at < $1 OR updated_at < $2 OR (updated_at = $2 AND thread_number <= $3)) \
    RETURNING thread_number";

/// The first thread, from the latest, that is one too many.
const SURPLUS_THREAD: &str = "\
    SELECT updated_at AS at, thread_number AS which FROM agui_threads WHERE holder IS NULL \
    ORDER BY updated_at DESC, thread_number DESC LIMIT 1 OFFSET $1";

const PRUNE_LOGS: &str = "\
    SELECT run_number FROM agui_runs WHERE has_log = 1 AND (ended_at < $1 \
    OR ended_at < $2 OR (ended_at = $2 AND run_number <= $3)) ORDER BY ended_at, run_number LIMIT $4";

const SURPLUS_LOG: &str = "\
    SELECT ended_at AS at, run_number AS which FROM agui_runs WHERE has_log = 1 \
    ORDER BY ended_at DESC, run_number DESC LIMIT 1 OFFSET $1";

const FORGET_LOG: &str = "UPDATE agui_runs SET has_log = 0 WHERE run_number = $1 AND has_log = 1";

const DELETE_LOG: &str = "DELETE FROM agui_log WHERE run_number = $1";

/// Everything before `age` goes, and everything up to the surplus one: its time, and what tells it from others of
/// that time.
#[derive(Clone, Copy)]
struct Bound {
    age: Millis,
    surplus: (Millis, i64),
}

impl Sql {
    pub(super) async fn delete_thread(&self, thread: &ThreadId) -> Result<bool, StoreError> {
        let thread = key::key(thread).into_owned();
        self.transact(move |conn| {
            Box::pin(async move {
                let deleted = sqlx::query(DELETE).bind(&thread).fetch_optional(&mut *conn).await?;
                if let Some(row) = &deleted {
                    delete_rest(conn, row.try_get("thread_number")?).await?;
                }
                Ok(deleted.is_some())
            })
        })
        .await
    }

    pub(super) async fn prune_outdated(&self, retention: &Retention, now: Millis) -> Result<Pruned, StoreError> {
        let mut pruned = Pruned::default();
        if let Some(bound) = self.bound(SURPLUS_THREAD, retention.thread_age, retention.threads, now).await? {
            pruned.threads = self.in_steps(bound, |conn, bound| Box::pin(prune_threads(conn, bound))).await?;
        }
        if let Some(bound) = self.bound(SURPLUS_LOG, retention.log_age, retention.logs, now).await? {
            pruned.logs = self.in_steps(bound, |conn, bound| Box::pin(prune_logs(conn, bound))).await?;
        }
        Ok(pruned)
    }

    /// `None` when everything may stay.
    async fn bound(
        &self,
        surplus: &'static str,
        age: Option<u64>,
        count: Option<u64>,
        now: Millis,
    ) -> Result<Option<Bound>, StoreError> {
        let age = age.and_then(|age| now.checked_sub_unsigned(age));
        let mut first = None;
        if let Some(count) = count {
            first = self
                .read(move |conn| {
                    Box::pin(async move {
                        let row = sqlx::query(surplus).bind(number(count)).fetch_optional(conn).await?;
                        row.map(|row| Ok((row.try_get("at")?, row.try_get("which")?))).transpose()
                    })
                })
                .await?;
        }
        if age.is_none() && first.is_none() {
            return Ok(None);
        }
        // Before everything, where there is no such limit.
        let surplus = first.unwrap_or((Millis::MIN, 0));
        Ok(Some(Bound { age: age.unwrap_or(Millis::MIN), surplus }))
    }

    async fn in_steps(
        &self,
        bound: Bound,
        step: for<'c> fn(&'c mut AnyConnection, Bound) -> Work<'c, u64>,
    ) -> Result<u64, StoreError> {
        let mut removed = 0;
        for _ in 0..STEPS {
            let some = self.transact_many(move |conn| step(conn, bound)).await?;
            removed += some;
            if number(some) < STEP {
                break;
            }
        }
        Ok(removed)
    }
}

async fn prune_threads(conn: &mut AnyConnection, bound: Bound) -> Result<u64, Fault> {
    let (at, thread) = bound.surplus;
    let prune = sqlx::query(PRUNE_THREADS).bind(bound.age).bind(at).bind(thread).bind(STEP);
    let pruned = prune.fetch_all(&mut *conn).await?;
    for row in &pruned {
        delete_rest(conn, row.try_get("thread_number")?).await?;
    }
    Ok(pruned.len() as u64)
}

async fn prune_logs(conn: &mut AnyConnection, bound: Bound) -> Result<u64, Fault> {
    let (at, run) = bound.surplus;
    let outdated = sqlx::query(PRUNE_LOGS).bind(bound.age).bind(at).bind(run).bind(STEP);
    let mut pruned = 0;
    for row in outdated.fetch_all(&mut *conn).await? {
        let run: i64 = row.try_get("run_number")?;
        // Another process may have been here first.
        pruned += sqlx::query(FORGET_LOG).bind(run).execute(&mut *conn).await?.rows_affected();
        sqlx::query(DELETE_LOG).bind(run).execute(&mut *conn).await?;
    }
    Ok(pruned)
}

async fn delete_rest(conn: &mut AnyConnection, thread: i64) -> Result<(), Fault> {
    for statement in REST {
        sqlx::query(statement).bind(thread).execute(&mut *conn).await?;
    }
    Ok(())
}
