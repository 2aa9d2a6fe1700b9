//! Threads and runs, as they are.

use sqlx::{Row as _, any::AnyRow};

use super::{
    Sql,
    error::Fault,
    key,
    rows::{self, number, run_columns, runs_of_thread},
};
use crate::{
    protocol::{RunId, ThreadId},
    store::{Millis, RunRecord, StoreError, Thread, ThreadPage, ThreadSummary},
};

const THREAD: &str = "\
    SELECT t.owner_key, t.owner_id, t.agent, t.holder, t.run_key, t.run_id, t.version, t.created_at, t.updated_at, \
        c.messages, c.state, c.interrupts \
    FROM agui_threads AS t LEFT JOIN agui_contents AS c ON c.thread_number = t.thread_number WHERE t.thread_key = $1";

/// Keys break ties between threads that changed in the same millisecond, so that no page misses or repeats one.
const THREADS: &str = "\
    SELECT thread_key, thread_id, agent, holder, run_key, run_id, open_interrupts, created_at, updated_at \
    FROM agui_threads WHERE owner_key = $1 AND updated_at <= $2 AND (updated_at < $2 OR $3 IS NULL OR thread_key > $3) \
    ORDER BY updated_at DESC, thread_key LIMIT $4";

pub(super) const RUN: &str =
    concat!("SELECT ", run_columns!(), " FROM ", runs_of_thread!("r"), " WHERE r.run_key = $2");

const RUNS: &str =
    concat!("SELECT ", run_columns!(), " FROM ", runs_of_thread!("r"), " ORDER BY r.run_number DESC LIMIT $2");

impl Sql {
    pub(super) async fn read_thread(&self, id: &ThreadId) -> Result<Option<Thread>, StoreError> {
        let id = id.clone();
        self.read(move |conn| {
            Box::pin(async move {
                let thread = sqlx::query(THREAD).bind(&*key::key(&id)).fetch_optional(conn).await?;
                thread.map(|row| self::thread(&row, id)).transpose()
            })
        })
        .await
    }

    pub(super) async fn read_threads(
        &self,
        owner: Option<&str>,
        page: &ThreadPage,
    ) -> Result<Vec<ThreadSummary>, StoreError> {
        let (owner, limit) = (key::owner_key(owner).into_owned(), number(page.limit));
        let (time, after) = page.after.as_ref().map_or((Millis::MAX, None), |(time, id)| (*time, Some(key::key(id))));
        let after = after.map(|key| key.into_owned());
        self.read(move |conn| {
            Box::pin(async move {
                let threads =
                    sqlx::query(THREADS).bind(owner).bind(time).bind(after).bind(limit).fetch_all(conn).await?;
                threads.iter().map(summary).collect()
            })
        })
        .await
    }

    pub(super) async fn read_run(&self, thread: &ThreadId, run: &RunId) -> Result<Option<RunRecord>, StoreError> {
        let (thread, run) = (thread.clone(), run.clone());
        self.read(move |conn| {
            Box::pin(async move {
                let record = sqlx::query(RUN).bind(&*key::key(&thread)).bind(&*key::key(&run));
                record.fetch_optional(conn).await?.map(|row| rows::run(&row, &thread)).transpose()
            })
        })
        .await
    }

    pub(super) async fn read_runs(&self, thread: &ThreadId, limit: usize) -> Result<Vec<RunRecord>, StoreError> {
        let thread = thread.clone();
        self.read(move |conn| {
            Box::pin(async move {
                let records = sqlx::query(RUNS).bind(&*key::key(&thread)).bind(number(limit)).fetch_all(conn).await?;
                records.iter().map(|row| rows::run(row, &thread)).collect()
            })
        })
        .await
    }

    pub(super) async fn check_tables(&self) -> Result<(), StoreError> {
        self.read(|conn| {
            Box::pin(async move {
                sqlx::query("SELECT MAX(version) AS version FROM agui_schema").fetch_one(conn).await?;
                Ok(())
            })
        })
        .await
    }
}

fn thread(row: &AnyRow, id: ThreadId) -> Result<Thread, Fault> {
    Ok(Thread {
        id,
        owner: key::owner(row.try_get("owner_key")?, row.try_get("owner_id")?)?,
        agent: key::from_text(row.try_get("agent")?)?,
        content: rows::content(row)?,
        active_run: active_run(row)?,
        version: row.try_get("version")?,
        created_at: row.try_get("created_at")?,
        updated_at: row.try_get("updated_at")?,
    })
}

fn summary(row: &AnyRow) -> Result<ThreadSummary, Fault> {
    Ok(ThreadSummary {
        id: rows::thread_id(row)?,
        agent: key::from_text(row.try_get("agent")?)?,
        active_run: active_run(row)?,
        open_interrupts: rows::count(row, "open_interrupts")?,
        created_at: row.try_get("created_at")?,
        updated_at: row.try_get("updated_at")?,
    })
}

/// The thread's last run, if it is held by somebody.
fn active_run(row: &AnyRow) -> Result<Option<RunId>, Fault> {
    let held: Option<&str> = row.try_get("holder")?;
    held.map(|_| rows::run_id(row)).transpose()
}
