//! Begins a run.
//!
//! One statement decides: it makes the thread or takes its lease, and does neither when a run is running or the
//! thread is somebody else's. Of several that begin at the same moment, in whatever processes, the
//! first to lock the thread's row begins and the others find it busy.

use sqlx::{AnyConnection, Row as _};
use uuid::Uuid;

use super::{
    Sql,
    error::Fault,
    key::{self, Name},
    rows::{self, run_columns},
};
use crate::store::{Begin, Lease, NewRun, RunRecord, RunStatus, StoreError, Thread, ThreadContent};

const TAKE: &str = "\
    INSERT INTO agui_threads AS t (thread_key, thread_id, owner_key, owner_id, agent, token, run_key, run_id, \
        holder, lease_until, cancel, version, open_interrupts, created_at, updated_at) \
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, 0, 0, 0, $11, $11) \
    ON CONFLICT (thread_key) DO UPDATE SET \
        agent = excluded.agent, token = t.token + 1, run_key = excluded.run_key, \
        run_id = excluded.run_id, holder = excluded.holder, lease_until = excluded.lease_until, cancel = 0, \
        updated_at = excluded.updated_at \
    WHERE t.holder IS NULL AND t.owner_key = excluded.owner_key \
    RETURNING token, version, created_at";

const REPLACE: &str = "DELETE FROM agui_runs WHERE thread_key = $1 AND run_key = $2 RETURNING run_number";

const REPLACE_LOG: &str = "DELETE FROM agui_log WHERE run_number = $1";

const RECORD: &str = "\
    INSERT INTO agui_runs (thread_key, run_key, run_id, agent, detached, status, started_at, events, has_log) \
    VALUES ($1, $2, $3, $4, $5, 'running', $6, 0, 0) RETURNING run_number";

const CONTENT: &str = "SELECT messages, state, interrupts FROM agui_contents WHERE thread_key = $1";

const BUSY: &str = concat!(
    "SELECT t.owner_key, t.token, t.holder, t.lease_until, ",
    run_columns!(),
    " FROM agui_threads AS t JOIN agui_runs AS r ON r.thread_key = t.thread_key AND r.run_key = t.run_key \
     WHERE t.thread_key = $1"
);

/// The first token of a new thread. A thread that was deleted and made again must not know the leases of its
/// former life, and nothing remembers them: so threads begin anywhere, with room for as many runs as can be.
fn first_token() -> i64 {
    let random = Uuid::new_v4().as_u64_pair().1 & ((1 << 52) - 1);
    i64::try_from(random).unwrap_or(0) + 1
}

impl Sql {
    pub(super) async fn begin_run(&self, run: &NewRun) -> Result<Begin, StoreError> {
        let (run, shared) = (run.clone(), self.dialect == super::Dialect::Postgres);
        self.transact(move |conn| Box::pin(begin(conn, run, shared))).await
    }
}

async fn begin(conn: &mut AnyConnection, run: NewRun, shared: bool) -> Result<Begin, Fault> {
    let (thread, owner) = (Name::new(&run.thread_id), Name::owner(run.owner.as_deref()));
    let (name, holder, agent) = (Name::new(&run.run_id), key::key(&run.holder), key::text(&run.agent));
    let first = first_token();
    let taken = sqlx::query(TAKE)
        .bind(&thread.key)
        .bind(&thread.full)
        .bind(&owner.key)
        .bind(&owner.full)
        .bind(&agent)
        .bind(first)
        .bind(&name.key)
        .bind(&name.full)
        .bind(&*holder)
        .bind(run.until)
        .bind(run.now)
        .fetch_optional(&mut *conn)
        .await?;
    let Some(taken) = taken else { return busy(conn, &run, &thread.key, &owner.key, &holder, shared).await };
    let token: i64 = taken.try_get("token")?;
    let (mut replaced, mut content) = (false, ThreadContent::default());
    // A thread that was just made has no runs and no content.
    if token != first {
        let number = sqlx::query(REPLACE).bind(&thread.key).bind(&name.key).fetch_optional(&mut *conn).await?;
        if let Some(number) = number {
            replaced = true;
            let number: i64 = number.try_get("run_number")?;
            sqlx::query(REPLACE_LOG).bind(number).execute(&mut *conn).await?;
        }
        if let Some(row) = sqlx::query(CONTENT).bind(&thread.key).fetch_optional(&mut *conn).await? {
            content = rows::content(&row)?;
        }
    }
    let record = sqlx::query(RECORD).bind(&thread.key).bind(&name.key).bind(&name.full).bind(&agent);
    let record = record.bind(i64::from(run.detached)).bind(run.now).fetch_one(conn).await?;
    let run_number = record.try_get("run_number")?;
    let thread = Thread {
        id: run.thread_id.clone(),
        owner: run.owner,
        agent: run.agent,
        content,
        active_run: Some(run.run_id.clone()),
        version: taken.try_get("version")?,
        created_at: taken.try_get("created_at")?,
        updated_at: run.now,
    };
    let lease = Lease { thread_id: run.thread_id, run_id: run.run_id, run_number, token };
    Ok(Begin::Begun { lease, thread, replaced })
}

/// Why the lease was not taken. The statement that did not take it has locked the row all the same.
async fn busy(
    conn: &mut AnyConnection,
    run: &NewRun,
    thread: &str,
    owner: &str,
    holder: &str,
    shared: bool,
) -> Result<Begin, Fault> {
    let row = sqlx::query(BUSY).bind(thread).fetch_one(conn).await?;
    if row.try_get::<&str, _>("owner_key")? != owner {
        return Ok(Begin::NotYours);
    }
    let active: RunRecord = rows::run(&row, &run.thread_id)?;
    let held_by: Option<&str> = row.try_get("holder")?;
    let until: Option<i64> = row.try_get("lease_until")?;
    if held_by.is_none() || active.status != RunStatus::Running {
        return Err(Fault::unreadable("a thread is neither busy nor free"));
    }
    let is_lost = if shared { until.is_some_and(|until| until < run.now) } else { held_by != Some(holder) };
    let lost = is_lost.then(|| -> Result<Lease, Fault> {
        Ok(Lease {
            thread_id: run.thread_id.clone(),
            run_id: active.run_id.clone(),
            run_number: active.number,
            token: row.try_get("token")?,
        })
    });
    Ok(Begin::Busy { lost: lost.transpose()?, run: active })
}
