//! Begins a run.
//!
//! One statement decides: it makes the thread or takes its lease, and does neither when a run is running or the
//! thread is somebody else's. Of several that begin at the same moment, in whatever processes, the
//! first to lock the thread's row begins and the others find it busy.
//!
//! The thread's row then names the run. One that outlives its connection gets a row of its own at once, for its log
//! refers to it; any other gets it when it has ended, and readers know (`runs_of_thread`).

use std::collections::HashMap;

use sqlx::{Any, AnyConnection, Row as _, any::AnyArguments, query::Query};

use super::{
    Dialect, Sql,
    error::Fault,
    group::{Done, Task},
    key::{self, Name},
    many::{MOST, Many},
    read::RUN,
    rows,
};
use crate::store::{Begin, Lease, NewRun, RunRecord, RunStatus, StoreError, Thread, ThreadContent};

static TAKE: Many = Many::new(
    "WITH v (thread_number, thread_key, thread_id, owner_key, owner_id, agent, run_number, run_key, run_id, recorded, \
        holder, lease_until, now) AS (VALUES ",
    "(#, ?, ?, ?, ?, ?, #, ?, ?, #, ?, #, #)",
    ") INSERT INTO agui_threads AS t (thread_number, thread_key, thread_id, owner_key, owner_id, agent, token, \
        run_number, run_key, run_id, run_started_at, run_recorded, holder, lease_until, cancel, version, \
        open_interrupts, created_at, updated_at) \
     SELECT {COALESCE(}v.thread_number{, nextval(pg_get_serial_sequence('agui_threads', 'thread_number')))}, \
        v.thread_key, v.thread_id, v.owner_key, v.owner_id, v.agent, 1, \
        {COALESCE(}v.run_number{, nextval(pg_get_serial_sequence('agui_runs', 'run_number')))}, v.run_key, \
        v.run_id, v.now, v.recorded, v.holder, v.lease_until, 0, 0, 0, v.now, v.now \
     FROM v WHERE v.thread_key IS NOT NULL \
     ON CONFLICT (thread_key) DO UPDATE SET \
        agent = excluded.agent, token = t.token + 1, run_number = excluded.run_number, run_key = excluded.run_key, \
        run_id = excluded.run_id, run_started_at = excluded.run_started_at, run_recorded = excluded.run_recorded, \
        holder = excluded.holder, lease_until = excluded.lease_until, cancel = 0, updated_at = excluded.updated_at \
     WHERE t.holder IS NULL AND t.owner_key = excluded.owner_key \
     RETURNING thread_number, token, version, created_at, run_number",
);

static RECORD: Many = Many::new(
    "WITH v (run_number, thread_number, run_key, run_id, agent, started_at) AS (VALUES ",
    "(#, #, ?, ?, ?, #)",
    ") INSERT INTO agui_runs (run_number, thread_number, run_key, run_id, agent, detached, status, \
        started_at, events, has_log) \
     SELECT v.run_number, v.thread_number, v.run_key, v.run_id, v.agent, 1, 'running', v.started_at, 0, 0 \
     FROM v WHERE v.run_number IS NOT NULL",
);

/// What threads hold, and the ended runs of the names of those that they were taken for.
static BEFORE: Many = Many::new(
    "SELECT t.thread_number, c.messages, c.state, c.interrupts, r.run_number AS replaced FROM agui_threads AS t \
     LEFT JOIN agui_contents AS c ON c.thread_number = t.thread_number \
     LEFT JOIN agui_runs AS r ON r.thread_number = t.thread_number AND r.run_key = t.run_key \
     WHERE t.thread_number IN (",
    "#",
    ")",
);

const REPLACE: &str = "DELETE FROM agui_runs WHERE run_number = $1";

const REPLACE_LOG: &str = "DELETE FROM agui_log WHERE run_number = $1";

const BUSY: &str =
    "SELECT thread_number, owner_key, token, holder, lease_until, run_key FROM agui_threads WHERE thread_key = $1";

/// The token that `TAKE` gives a new thread; one that was there has a higher one. A thread that was deleted and made
/// again does not know the leases of its former life, for it has another number.
const FIRST: i64 = 1;

/// A run to begin, as its columns hold it.
#[derive(Debug)]
pub(super) struct NewRow {
    pub(super) run: NewRun,
    pub(super) thread: Name,
    owner: Name,
    name: Name,
    pub(super) holder: String,
    agent: String,
    numbers: Option<Numbers>,
}

/// Numbers of a run and of its thread, if that is new, when it is this process that numbers them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Numbers {
    pub(super) thread: i64,
    pub(super) run: i64,
}

impl NewRow {
    pub(super) fn new(run: &NewRun, numbers: Option<Numbers>) -> Self {
        Self {
            thread: Name::new(&run.thread_id),
            owner: Name::owner(run.owner.as_deref()),
            name: Name::new(&run.run_id),
            holder: key::key(&run.holder).into_owned(),
            agent: key::text(&run.agent),
            numbers,
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
    run_number: i64,
    replaced: Option<i64>,
    content: ThreadContent,
}

impl Sql {
    pub(super) async fn begin_run(&self, run: &NewRun) -> Result<Begin, StoreError> {
        let group = self.group.as_ref();
        if let Some(begin) = group.and_then(|group| group.begin_fresh(run)) {
            return Ok(begin);
        }
        match self.together(|| Ok(Task::Begin(NewRow::new(run, group.map(|group| group.numbers()))))).await? {
            Done::Begin(begin) => Ok(*begin),
            Done::Saved | Done::Ended | Done::Made => Err(Fault::unreadable("a run was written, not begun").into()),
        }
    }
}

/// Begins all that can be begun, each on another thread.
pub(super) async fn begin(conn: &mut AnyConnection, dialect: Dialect, runs: &[NewRow]) -> Result<Vec<Begin>, Fault> {
    let mut taken = take(conn, dialect, runs).await?;
    read(conn, dialect, taken.iter_mut().flatten()).await?;
    let begun: Vec<_> = runs.iter().zip(&taken).filter_map(|(run, taken)| Some((run, taken.as_ref()?))).collect();
    record(conn, dialect, &begun).await?;
    let mut answers = Vec::with_capacity(runs.len());
    for (run, taken) in runs.iter().zip(taken) {
        answers.push(match taken {
            Some(taken) => run.begun(taken),
            None => busy(conn, run, dialect == Dialect::Postgres).await?,
        });
    }
    Ok(answers)
}

/// For each run the lease, if it was to be had.
async fn take(conn: &mut AnyConnection, dialect: Dialect, runs: &[NewRow]) -> Result<Vec<Option<Taken>>, Fault> {
    let mut all = Vec::with_capacity(runs.len());
    for these in runs.chunks(MOST) {
        let mut take = TAKE.query(dialect, these.len());
        for row in these {
            take = row.bind(take).bind(i64::from(row.run.detached)).bind(&row.holder);
            take = take.bind(row.run.until).bind(row.run.now);
        }
        let before = all.len();
        all.resize_with(before + these.len(), || None);
        for row in TAKE.filled(take, these.len()).fetch_all(&mut *conn).await? {
            let taken = Taken {
                thread: row.try_get(0)?,
                token: row.try_get(1)?,
                version: row.try_get(2)?,
                created_at: row.try_get(3)?,
                run_number: row.try_get(4)?,
                replaced: None,
                content: ThreadContent::default(),
            };
            // Where it is the database that numbers runs there is one alone.
            let is_it = |run: &NewRow| run.numbers.is_none_or(|numbers| numbers.run == taken.run_number);
            let place = these.iter().position(is_it).and_then(|place| all.get_mut(before + place));
            *place.ok_or_else(|| Fault::unreadable("a run was begun that nobody asked for"))? = Some(taken);
        }
    }
    Ok(all)
}

/// Removes ended runs of the same names, and records those that have a log.
async fn record(conn: &mut AnyConnection, dialect: Dialect, runs: &[(&NewRow, &Taken)]) -> Result<(), Fault> {
    for replaced in runs.iter().filter_map(|(_, taken)| taken.replaced) {
        sqlx::query(REPLACE).bind(replaced).execute(&mut *conn).await?;
        sqlx::query(REPLACE_LOG).bind(replaced).execute(&mut *conn).await?;
    }
    let detached: Vec<_> = runs.iter().filter(|(run, _)| run.run.detached).collect();
    for these in detached.chunks(MOST) {
        let mut insert = RECORD.query(dialect, these.len());
        for (run, taken) in these {
            insert = insert.bind(taken.run_number).bind(taken.thread).bind(&run.name.key);
            insert = insert.bind(run.name.full.as_ref()).bind(&run.agent).bind(run.run.now);
        }
        RECORD.filled(insert, these.len()).execute(&mut *conn).await?;
    }
    Ok(())
}

/// What there was before. A thread that was just made has neither content nor runs.
async fn read(
    conn: &mut AnyConnection,
    dialect: Dialect,
    taken: impl Iterator<Item = &mut Taken>,
) -> Result<(), Fault> {
    let old = taken.filter(|taken| taken.token != FIRST);
    let mut old: HashMap<i64, &mut Taken> = old.map(|taken| (taken.thread, taken)).collect();
    let threads: Vec<i64> = old.keys().copied().collect();
    for these in threads.chunks(MOST) {
        let read = these.iter().fold(BEFORE.query(dialect, these.len()), |read, thread| read.bind(*thread));
        for row in BEFORE.filled(read, these.len()).fetch_all(&mut *conn).await? {
            if let Some(taken) = old.get_mut(&row.try_get("thread_number")?) {
                taken.content = rows::content(&row)?;
                taken.replaced = row.try_get("replaced")?;
            }
        }
    }
    Ok(())
}

impl NewRow {
    /// Binds what names the thread and the run, and the agent.
    pub(super) fn bind<'q>(&self, query: Query<'q, Any, AnyArguments>) -> Query<'q, Any, AnyArguments> {
        let Self { thread, owner, name, agent, numbers, .. } = self;
        let query = query.bind(numbers.map(|numbers| numbers.thread)).bind(&*thread.key).bind(thread.full.as_deref());
        let query = query.bind(&*owner.key).bind(owner.full.as_deref()).bind(&**agent);
        query.bind(numbers.map(|numbers| numbers.run)).bind(&*name.key).bind(name.full.as_deref())
    }

    /// Whether a lease is of this thread.
    pub(super) fn is_of(&self, lease: &Lease) -> bool {
        self.numbers.is_some_and(|numbers| numbers.thread == lease.thread_number)
    }

    /// The answer when the thread is new.
    pub(super) fn begun_first(&self, Numbers { thread, run: run_number }: Numbers) -> Begin {
        let (created_at, content) = (self.run.now, ThreadContent::default());
        self.begun(Taken { thread, token: FIRST, version: 0, created_at, run_number, replaced: None, content })
    }

    fn begun(&self, taken: Taken) -> Begin {
        let Taken { thread: thread_number, token, version, created_at, run_number, replaced, content } = taken;
        let NewRun { thread_id, run_id, owner, agent, now, .. } = self.run.clone();
        let lease = Lease { thread_id: thread_id.clone(), thread_number, run_id: run_id.clone(), run_number, token };
        let active_run = Some(run_id);
        let thread = Thread { id: thread_id, owner, agent, content, active_run, version, created_at, updated_at: now };
        Begin::Begun { lease, thread, replaced: replaced.is_some() }
    }
}

/// Why the lease was not taken. The statement that did not take it has locked the row all the same.
async fn busy(
    conn: &mut AnyConnection,
    NewRow { run, thread, owner, holder, .. }: &NewRow,
    shared: bool,
) -> Result<Begin, Fault> {
    let row = sqlx::query(BUSY).bind(&thread.key).fetch_one(&mut *conn).await?;
    if row.try_get::<&str, _>("owner_key")? != owner.key {
        return Ok(Begin::NotYours);
    }
    let active = sqlx::query(RUN).bind(&thread.key).bind(row.try_get::<&str, _>("run_key")?).fetch_one(conn).await?;
    let active: RunRecord = rows::run(&active, &run.thread_id)?;
    let held_by: Option<&str> = row.try_get("holder")?;
    let until: Option<i64> = row.try_get("lease_until")?;
    if held_by.is_none() || active.status != RunStatus::Running {
        return Err(Fault::unreadable("a thread is neither busy nor free"));
    }
    let is_lost = if shared { until.is_some_and(|until| until < run.now) } else { held_by != Some(&**holder) };
    let lost = is_lost.then(|| -> Result<Lease, Fault> {
        Ok(Lease {
            thread_id: run.thread_id.clone(),
            thread_number: row.try_get("thread_number")?,
            run_id: active.run_id.clone(),
            run_number: active.number,
            token: row.try_get("token")?,
        })
    });
    Ok(Begin::Busy { lost: lost.transpose()?, run: active })
}
