//! Reads, on a pool of connections that cannot write.

use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::{Connection, Params, Row, params};
use tokio::sync::Semaphore;

use super::{connection::connect, files::DatabaseFiles};
use crate::{
    protocol::{InterruptId, RunId, ThreadId},
    store::{
        EndState, LostRun, MAX_SEARCHED_THREADS, RunRecord, StoreError, ThreadKey, ThreadPage, ThreadParts,
        ThreadSummary, ThreadView,
        rows::{self, DbRow},
        text::{from_json, name_to_text},
        write::unanswered,
    },
};

const MAX_READERS: usize = 4;

const THREAD: &str = "
    SELECT t.*, s.body AS state_body FROM agui_threads AS t
    LEFT JOIN agui_states AS s ON s.thread = t.number AND s.number = t.state
    WHERE t.owner = ?1 AND t.id = ?2";

const NODES: &str = "
    SELECT m.number, m.parent, m.run, COALESCE(r.delivered, 1) AS delivered, m.body FROM agui_messages AS m
    LEFT JOIN agui_runs AS r ON r.number = m.run
    WHERE m.thread = ?1 ORDER BY m.number";

const THREADS: &str = "
    SELECT * FROM agui_threads
    WHERE owner = ?1 AND run < ?2 AND archived = COALESCE(?4, archived) AND agent = COALESCE(?5, agent)
    ORDER BY run DESC LIMIT ?3";

/// Has no index of run ids: each run would have to change it.
const THREAD_OF_RUN: &str = "
    SELECT id FROM (SELECT id, run, run_id FROM agui_threads WHERE owner = ?1 ORDER BY run DESC LIMIT ?3)
    WHERE run_id = ?2 ORDER BY run DESC LIMIT 1";

const RUN: &str = "
    SELECT *, COALESCE((SELECT MAX(last) FROM agui_events WHERE run = number), 0) AS logged
    FROM agui_runs WHERE thread = ?1 AND id = ?2";

const RUN_BY_NUMBER: &str = "
    SELECT *, COALESCE((SELECT MAX(last) FROM agui_events WHERE run = number), 0) AS logged
    FROM agui_runs WHERE number = ?1";

const RUNS: &str = "
    SELECT *, COALESCE((SELECT MAX(last) FROM agui_events WHERE run = number), 0) AS logged
    FROM agui_runs WHERE thread = ?1 ORDER BY number DESC LIMIT ?2";

/// `?2` is a run's id, or `?3` the last message of its branch. The other one is NULL.
const END_STATE: &str = "
    SELECT r.id, r.head, r.state, s.body AS state_body, r.interrupts FROM agui_runs AS r
    LEFT JOIN agui_states AS s ON s.thread = r.thread AND s.number = r.state
    WHERE r.thread = ?1 AND (r.id = ?2 OR r.head = ?3) AND r.ended_at IS NOT NULL
    ORDER BY r.number DESC LIMIT 1";

const ANSWERED: &str = "SELECT answered FROM agui_runs WHERE thread = ?1 AND answered IS NOT NULL";

const LOST: &str = "
    SELECT owner, id, run_id, number, run, holder FROM agui_threads WHERE holder <> ?1 ORDER BY run LIMIT ?2";

#[derive(Debug)]
pub(super) struct Readers {
    files: Arc<DatabaseFiles>,
    idle: Arc<Mutex<Vec<Connection>>>,
    permits: Arc<Semaphore>,
}

impl Readers {
    pub(super) fn new(files: Arc<DatabaseFiles>) -> Self {
        Self { files, idle: Arc::default(), permits: Arc::new(Semaphore::new(MAX_READERS)) }
    }

    pub(super) async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let permit =
            self.permits.clone().acquire_owned().await.map_err(|error| StoreError::Unavailable(error.into()))?;
        let (idle, files) = (self.idle.clone(), self.files.clone());
        let read = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            let lock = || idle.lock().unwrap_or_else(PoisonError::into_inner);
            let pooled = lock().pop();
            let conn = match pooled {
                Some(conn) => conn,
                None => {
                    let conn = connect(files.path())?;
                    conn.execute_batch("PRAGMA query_only = ON")?;
                    conn
                }
            };
            let result = work(&conn);
            // A connection on which a read failed is closed.
            if result.is_ok() {
                lock().push(conn);
            }
            result
        });
        read.await.unwrap_or_else(|error| Err(StoreError::Failed(error.into())))
    }
}

impl DbRow for Row<'_> {
    fn text(&self, column: &str) -> Result<Option<&str>, StoreError> {
        Ok(self.get_ref(column)?.as_str_or_null()?)
    }

    fn number(&self, column: &str) -> Result<Option<i64>, StoreError> {
        Ok(self.get(column)?)
    }

    fn flag(&self, column: &str) -> Result<bool, StoreError> {
        Ok(self.get(column)?)
    }
}

pub(super) fn one<T>(
    conn: &Connection,
    sql: &str,
    params: impl Params,
    read: impl FnOnce(&Row<'_>) -> Result<T, StoreError>,
) -> Result<Option<T>, StoreError> {
    let mut select = conn.prepare_cached(sql)?;
    let mut rows = select.query(params)?;
    rows.next()?.map(read).transpose()
}

pub(super) fn all<T>(
    conn: &Connection,
    sql: &str,
    params: impl Params,
    mut read: impl FnMut(&Row<'_>) -> Result<T, StoreError>,
) -> Result<Vec<T>, StoreError> {
    let mut select = conn.prepare_cached(sql)?;
    let mut rows = select.query(params)?;
    let mut all = Vec::new();
    while let Some(row) = rows.next()? {
        all.push(read(row)?);
    }
    Ok(all)
}

pub(super) fn thread(
    conn: &Connection,
    key: &ThreadKey,
    include: ThreadParts,
) -> Result<Option<ThreadView>, StoreError> {
    // In one transaction, so that all parts are of one moment.
    let tx = conn.unchecked_transaction()?;
    let id = name_to_text(&key.id);
    let Some(thread) = one(&tx, THREAD, params![key.owner, id], |row| rows::thread(row, key))? else {
        return Ok(None);
    };
    let nodes = if include.messages { all(&tx, NODES, [thread.number], |row| rows::node(row))? } else { Vec::new() };
    let runs = match include.runs {
        0 => Vec::new(),
        limit => all(&tx, RUNS, params![thread.number, limit as i64], |row| rows::run(row))?,
    };
    Ok(Some(ThreadView { thread, nodes, runs }))
}

pub(super) fn threads(conn: &Connection, owner: &str, page: &ThreadPage) -> Result<Vec<ThreadSummary>, StoreError> {
    let (after, agent) = (page.after.unwrap_or(i64::MAX), page.agent.as_deref().map(name_to_text));
    all(conn, THREADS, params![owner, after, page.limit as i64, page.archived, agent], |row| rows::summary(row))
}

pub(super) fn thread_of_run(conn: &Connection, owner: &str, run: &RunId) -> Result<Option<ThreadId>, StoreError> {
    let params = params![owner, name_to_text(run), MAX_SEARCHED_THREADS as i64];
    one(conn, THREAD_OF_RUN, params, |row| rows::thread_id(row))
}

pub(super) fn run(conn: &Connection, thread: i64, id: &RunId) -> Result<Option<RunRecord>, StoreError> {
    one(conn, RUN, params![thread, name_to_text(id)], |row| rows::run(row))
}

pub(super) fn run_by_number(conn: &Connection, run: i64) -> Result<Option<RunRecord>, StoreError> {
    one(conn, RUN_BY_NUMBER, [run], |row| rows::run(row))
}

pub(super) fn end_state(
    conn: &Connection,
    thread: i64,
    id: Option<&RunId>,
    head: Option<i64>,
) -> Result<Option<EndState>, StoreError> {
    let tx = conn.unchecked_transaction()?;
    let params = params![thread, id.map(|id| name_to_text(id)), head];
    let Some(left) = one(&tx, END_STATE, params, |row| rows::end_state(row))? else { return Ok(None) };
    if left.interrupts.is_empty() {
        return Ok(Some(left));
    }
    let answered: Vec<Vec<InterruptId>> = all(&tx, ANSWERED, [thread], |row| from_json(&row.get::<_, String>(0)?))?;
    Ok(Some(EndState { interrupts: unanswered(left.interrupts, answered.iter().flatten()), ..left }))
}

pub(super) fn lost_runs(conn: &Connection, holder: &str, limit: usize) -> Result<Vec<LostRun>, StoreError> {
    all(conn, LOST, params![holder, limit as i64], |row| rows::lost_run(row))
}
