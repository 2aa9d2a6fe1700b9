//! Reads threads, lists, runs and end states.

use sqlx::{Row as _, postgres::PgRow};

use super::Database;
use crate::{
    protocol::{InterruptId, RunId, ThreadId},
    store::{
        EndState, EndedRun, MAX_SEARCHED_THREADS, RunRecord, StoreError, ThreadKey, ThreadParts, ThreadView,
        rows::{self, DbRow},
        text::{from_json, name_to_text},
        write::unanswered,
    },
};

/// Begins a transaction whose statements all see the database as it was at one moment.
pub(super) const BEGIN_SNAPSHOT: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";

const THREAD: &str = "
    SELECT t.*, s.body AS state_body FROM agui_threads AS t
    LEFT JOIN agui_states AS s ON s.thread = t.number AND s.number = t.state
    WHERE t.owner = $1 AND t.id = $2";

const NODES: &str = "
    SELECT m.number, m.parent, m.run, COALESCE(r.delivered, TRUE) AS delivered, m.body FROM agui_messages AS m
    LEFT JOIN agui_runs AS r ON r.number = m.run
    WHERE m.thread = $1 ORDER BY m.number";

/// Has no index of run ids: each run would have to change it.
const THREAD_OF_RUN: &str = "
    SELECT id FROM (SELECT id, run, run_id FROM agui_threads WHERE owner = $1 ORDER BY run DESC LIMIT $3) AS newest
    WHERE run_id = $2 ORDER BY run DESC LIMIT 1";

const RUN: &str = "
    SELECT *, COALESCE((SELECT MAX(last) FROM agui_events WHERE run = number), 0) AS logged
    FROM agui_runs WHERE thread = $1 AND id = $2";

const RUNS: &str = "
    SELECT *, COALESCE((SELECT MAX(last) FROM agui_events WHERE run = number), 0) AS logged
    FROM agui_runs WHERE thread = $1 ORDER BY number DESC LIMIT $2";

/// `$2` is a run's id, or `$3` the last message of its branch. The other one is NULL.
const END_STATE: &str = "
    SELECT r.id, r.head, r.state, s.body AS state_body, r.interrupts FROM agui_runs AS r
    LEFT JOIN agui_states AS s ON s.thread = r.thread AND s.number = r.state
    WHERE r.thread = $1 AND (r.id = $2 OR r.head = $3) AND r.ended_at IS NOT NULL
    ORDER BY r.number DESC LIMIT 1";

const ANSWERED: &str = "SELECT answered FROM agui_runs WHERE thread = $1 AND answered IS NOT NULL";

/// Writes a row, although the version stays the same.
const CHECK: &str = "UPDATE agui_schema SET version = version RETURNING version";

impl DbRow for PgRow {
    fn text(&self, column: &str) -> Result<Option<&str>, StoreError> {
        Ok(self.try_get(column)?)
    }

    fn number(&self, column: &str) -> Result<Option<i64>, StoreError> {
        Ok(self.try_get(column)?)
    }

    fn flag(&self, column: &str) -> Result<bool, StoreError> {
        Ok(self.try_get(column)?)
    }
}

impl Database {
    pub(super) async fn thread(&self, key: &ThreadKey, include: ThreadParts) -> Result<Option<ThreadView>, StoreError> {
        let mut operation = self.operation().await?;
        let is_one_statement = !include.messages && include.runs == 0;
        if !is_one_statement {
            operation.begin(BEGIN_SNAPSHOT).await?;
        }
        let query = sqlx::query(THREAD).bind(&*key.owner).bind(&*name_to_text(&key.id));
        let thread = operation.first(query).await?.map(|row| rows::thread(&row, key)).transpose()?;
        let (mut nodes, mut runs) = (Vec::new(), Vec::new());
        if let Some(thread) = &thread {
            if include.messages {
                nodes = operation.all(sqlx::query(NODES).bind(thread.number)).await?;
            }
            if include.runs > 0 {
                let limit = i64::try_from(include.runs).unwrap_or(i64::MAX);
                runs = operation.all(sqlx::query(RUNS).bind(thread.number).bind(limit)).await?;
            }
        }
        if !is_one_statement {
            operation.commit().await?;
        }
        drop(operation);
        let Some(thread) = thread else { return Ok(None) };
        let nodes = nodes.iter().map(rows::node).collect::<Result<_, _>>()?;
        Ok(Some(ThreadView { thread, nodes, runs: runs.iter().map(rows::run).collect::<Result<_, _>>()? }))
    }

    pub(super) async fn thread_of_run(&self, owner: &str, run: &RunId) -> Result<Option<ThreadId>, StoreError> {
        let query = sqlx::query(THREAD_OF_RUN).bind(owner).bind(&*name_to_text(run));
        let row = self.first(query.bind(MAX_SEARCHED_THREADS as i64)).await?;
        row.map(|row| rows::thread_id(&row)).transpose()
    }

    pub(super) async fn run(&self, thread: i64, id: &RunId) -> Result<Option<RunRecord>, StoreError> {
        let row = self.first(sqlx::query(RUN).bind(thread).bind(&*name_to_text(id))).await?;
        row.map(|row| rows::run(&row)).transpose()
    }

    pub(super) async fn end_state(&self, thread: i64, by: EndedRun<'_>) -> Result<Option<EndState>, StoreError> {
        let (id, head) = match by {
            EndedRun::Id(id) => (Some(name_to_text(id).into_owned()), None),
            EndedRun::Head(head) => (None, Some(head)),
        };
        let row = self.first(sqlx::query(END_STATE).bind(thread).bind(id).bind(head)).await?;
        let Some(left) = row.map(|row| rows::end_state(&row)).transpose()? else { return Ok(None) };
        if left.interrupts.is_empty() {
            return Ok(Some(left));
        }
        // This statement runs after the one above, so an interrupt that was answered in between counts as answered.
        let answered = self.all(sqlx::query(ANSWERED).bind(thread)).await?;
        let answered = answered.iter().map(|row| from_json(row.try_get(0)?));
        let answered = answered.collect::<Result<Vec<Vec<InterruptId>>, StoreError>>()?;
        Ok(Some(EndState { interrupts: unanswered(left.interrupts, answered.iter().flatten()), ..left }))
    }

    pub(super) async fn check(&self) -> Result<(), StoreError> {
        self.first(sqlx::query(CHECK)).await?.map(drop).ok_or_else(|| StoreError::Failed("agui_schema is empty".into()))
    }
}
