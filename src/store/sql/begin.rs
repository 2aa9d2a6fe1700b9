//! Begins a run.
//!
//! One statement decides: it makes the thread or takes its lease, and does neither when a run is running or the
//! thread is somebody else's. Of several that begin at the same moment, in whatever processes, the
//! first to lock the thread's row begins and the others find it busy.

use std::collections::HashMap;

use sqlx::{AnyConnection, Row as _};
use uuid::Uuid;

use super::{
    Dialect, Sql,
    error::Fault,
    group::{Done, Task},
    key::{self, Name},
    many::{MOST, Many},
    rows::{self, run_columns},
};
use crate::store::{Begin, Lease, NewRun, RunRecord, RunStatus, StoreError, Thread, ThreadContent};

static TAKE: Many = Many::new(
    "WITH v (thread_key, thread_id, owner_key, owner_id, agent, token, run_key, run_id, holder, lease_until, now) \
     AS (VALUES ",
    "(?, ?, ?, ?, ?, #, ?, ?, ?, #, #)",
    ") INSERT INTO agui_threads AS t (thread_key, thread_id, owner_key, owner_id, agent, token, run_key, run_id, \
        holder, lease_until, cancel, version, open_interrupts, created_at, updated_at) \
     SELECT v.thread_key, v.thread_id, v.owner_key, v.owner_id, v.agent, v.token, v.run_key, v.run_id, \
        v.holder, v.lease_until, 0, 0, 0, v.now, v.now FROM v WHERE v.thread_key IS NOT NULL \
     ON CONFLICT (thread_key) DO UPDATE SET \
        agent = excluded.agent, token = t.token + 1, run_key = excluded.run_key, \
        run_id = excluded.run_id, holder = excluded.holder, lease_until = excluded.lease_until, cancel = 0, \
        updated_at = excluded.updated_at \
     WHERE t.holder IS NULL AND t.owner_key = excluded.owner_key \
     RETURNING thread_key, thread_number, token, version, created_at",
);

static RECORD: Many = Many::new(
    "WITH v (thread_number, run_key, run_id, agent, detached, started_at) AS (VALUES ",
    "(#, ?, ?, ?, #, #)",
    ") INSERT INTO agui_runs (thread_number, run_key, run_id, agent, detached, status, started_at, events, has_log) \
     SELECT v.thread_number, v.run_key, v.run_id, v.agent, v.detached, 'running', v.started_at, 0, 0 \
     FROM v WHERE v.thread_number IS NOT NULL \
     ON CONFLICT (thread_number, run_key) DO NOTHING RETURNING thread_number, run_number",
);

static CONTENT: Many = Many::new(
    "SELECT thread_number, messages, state, interrupts FROM agui_contents WHERE thread_number IN (",
    "#",
    ")",
);

const REPLACE: &str = "DELETE FROM agui_runs WHERE thread_number = $1 AND run_key = $2 RETURNING run_number";

const REPLACE_LOG: &str = "DELETE FROM agui_log WHERE run_number = $1";

const BUSY: &str = concat!(
    "SELECT t.owner_key, t.token, t.holder, t.lease_until, ",
    run_columns!(),
    " FROM agui_threads AS t JOIN agui_runs AS r ON r.thread_number = t.thread_number AND r.run_key = t.run_key \
     WHERE t.thread_key = $1"
);

/// The first token of a new thread. A thread that was deleted and made again must not know the leases of its
/// former life, and nothing remembers them: so threads begin anywhere, with room for as many runs as can be.
fn first_token() -> i64 {
    let random = Uuid::new_v4().as_u64_pair().1 & ((1 << 52) - 1);
    i64::try_from(random).unwrap_or(0) + 1
}

/// A run to begin, as its columns hold it.
#[derive(Debug)]
pub(super) struct NewRow {
    run: NewRun,
    pub(super) thread: Name,
    owner: Name,
    name: Name,
    holder: String,
    agent: String,
    /// The token of the lease, if the thread is new.
    first: i64,
}

impl NewRow {
    fn new(run: &NewRun) -> Self {
        Self {
            thread: Name::new(&run.thread_id),
            owner: Name::owner(run.owner.as_deref()),
            name: Name::new(&run.run_id),
            holder: key::key(&run.holder).into_owned(),
            agent: key::text(&run.agent),
            first: first_token(),
            run: run.clone(),
        }
    }
}

/// What was found in place of a lease that was taken.
struct Taken {
    thread: i64,
    token: i64,
    version: i64,
    created_at: i64,
    run_number: Option<i64>,
    replaced: bool,
    content: ThreadContent,
}

impl Sql {
    pub(super) async fn begin_run(&self, run: &NewRun) -> Result<Begin, StoreError> {
        match self.together(Task::Begin(NewRow::new(run))).await? {
            Done::Begin(begin) => Ok(*begin),
            Done::Saved | Done::Ended => Err(Fault::unreadable("a run was written, not begun").into()),
        }
    }
}

/// Begins all that can be begun, each on another thread.
pub(super) async fn begin(conn: &mut AnyConnection, dialect: Dialect, runs: &[&NewRow]) -> Result<Vec<Begin>, Fault> {
    let mut taken = take(conn, dialect, runs).await?;
    let begun = runs.iter().filter_map(|run| Some((*run, taken.remove(&run.thread.key)?)));
    let mut begun: Vec<(&NewRow, Taken)> = begun.collect();
    record(conn, dialect, &mut begun).await?;
    read(conn, dialect, &mut begun).await?;
    let mut begun: HashMap<&str, Taken> = begun.into_iter().map(|(run, taken)| (&*run.thread.key, taken)).collect();
    let mut answers = Vec::with_capacity(runs.len());
    for run in runs {
        answers.push(match begun.remove(&*run.thread.key) {
            Some(taken) => run.begun(taken)?,
            None => busy(conn, run, dialect == Dialect::Postgres).await?,
        });
    }
    Ok(answers)
}

/// By thread, the leases that were to be had.
async fn take(conn: &mut AnyConnection, dialect: Dialect, runs: &[&NewRow]) -> Result<HashMap<String, Taken>, Fault> {
    let mut all = HashMap::with_capacity(runs.len());
    for these in runs.chunks(MOST) {
        let mut take = TAKE.query(dialect, these.len());
        for row in these {
            take = take.bind(&row.thread.key).bind(row.thread.full.as_ref());
            take = take.bind(&row.owner.key).bind(row.owner.full.as_ref()).bind(&row.agent).bind(row.first);
            take = take.bind(&row.name.key).bind(row.name.full.as_ref()).bind(&row.holder);
            take = take.bind(row.run.until).bind(row.run.now);
        }
        for row in TAKE.filled(take, these.len()).fetch_all(&mut *conn).await? {
            let taken = Taken {
                thread: row.try_get(1)?,
                token: row.try_get(2)?,
                version: row.try_get(3)?,
                created_at: row.try_get(4)?,
                run_number: None,
                replaced: false,
                content: ThreadContent::default(),
            };
            all.insert(row.try_get(0)?, taken);
        }
    }
    Ok(all)
}

/// Records the runs as running, in place of ended ones of the same name.
async fn record(conn: &mut AnyConnection, dialect: Dialect, runs: &mut [(&NewRow, Taken)]) -> Result<(), Fault> {
    for these in runs.chunks_mut(MOST) {
        let named: Vec<_> = these.iter().map(|(run, taken)| (*run, taken.thread)).collect();
        let numbers = insert(conn, dialect, &named).await?;
        for (run, taken) in these {
            taken.run_number = numbers.get(&taken.thread).copied();
            if taken.run_number.is_some() {
                continue;
            }
            taken.replaced = true;
            let ended = sqlx::query(REPLACE).bind(taken.thread).bind(&run.name.key).fetch_one(&mut *conn).await?;
            sqlx::query(REPLACE_LOG).bind(ended.try_get::<i64, _>(0)?).execute(&mut *conn).await?;
            taken.run_number = insert(conn, dialect, &[(run, taken.thread)]).await?.into_values().next();
        }
    }
    Ok(())
}

/// By thread, the numbers of the runs whose name was free.
async fn insert(
    conn: &mut AnyConnection,
    dialect: Dialect,
    runs: &[(&NewRow, i64)],
) -> Result<HashMap<i64, i64>, Fault> {
    let mut insert = RECORD.query(dialect, runs.len());
    for (run, thread) in runs {
        insert = insert.bind(*thread).bind(&run.name.key).bind(run.name.full.as_ref());
        insert = insert.bind(&run.agent).bind(i64::from(run.run.detached)).bind(run.run.now);
    }
    let numbers = RECORD.filled(insert, runs.len()).fetch_all(conn).await?;
    numbers.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?))).collect()
}

/// What the threads hold. One that was just made has no content.
async fn read(conn: &mut AnyConnection, dialect: Dialect, runs: &mut [(&NewRow, Taken)]) -> Result<(), Fault> {
    let old = runs.iter_mut().filter(|(run, taken)| taken.token != run.first);
    let mut old: HashMap<i64, &mut Taken> = old.map(|(_, taken)| (taken.thread, taken)).collect();
    let threads: Vec<i64> = old.keys().copied().collect();
    for these in threads.chunks(MOST) {
        let read = these.iter().fold(CONTENT.query(dialect, these.len()), |read, thread| read.bind(*thread));
        for row in CONTENT.filled(read, these.len()).fetch_all(&mut *conn).await? {
            if let Some(taken) = old.get_mut(&row.try_get("thread_number")?) {
                taken.content = rows::content(&row)?;
            }
        }
    }
    Ok(())
}

impl NewRow {
    fn begun(&self, taken: Taken) -> Result<Begin, Fault> {
        let Taken { token, version, created_at, run_number, replaced, content, .. } = taken;
        let NewRun { thread_id, run_id, owner, agent, now, .. } = self.run.clone();
        let run_number = run_number.ok_or_else(|| Fault::unreadable("a run was not recorded"))?;
        let lease = Lease { thread_id: thread_id.clone(), run_id: run_id.clone(), run_number, token };
        let active_run = Some(run_id);
        let thread = Thread { id: thread_id, owner, agent, content, active_run, version, created_at, updated_at: now };
        Ok(Begin::Begun { lease, thread, replaced })
    }
}

/// Why the lease was not taken. The statement that did not take it has locked the row all the same.
async fn busy(
    conn: &mut AnyConnection,
    NewRow { run, thread, owner, holder, .. }: &NewRow,
    shared: bool,
) -> Result<Begin, Fault> {
    let row = sqlx::query(BUSY).bind(&thread.key).fetch_one(conn).await?;
    if row.try_get::<&str, _>("owner_key")? != owner.key {
        return Ok(Begin::NotYours);
    }
    let active: RunRecord = rows::run(&row, &run.thread_id)?;
    let held_by: Option<&str> = row.try_get("holder")?;
    let until: Option<i64> = row.try_get("lease_until")?;
    if held_by.is_none() || active.status != RunStatus::Running {
        return Err(Fault::unreadable("a thread is neither busy nor free"));
    }
    let is_lost = if shared { until.is_some_and(|until| until < run.now) } else { held_by != Some(&**holder) };
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
