//! Reads threads, pages of their messages, runs and end states.

use std::time::Duration;

use sqlx::{AssertSqlSafe, Error, Row as _, postgres::PgRow};

use super::pool::{Operation, PostgresPool, Statement};
use crate::{
    EndState, EndedRun, MessagePage, MessageQuery, RunRecord, StoreError, StoreResult, ThreadKey,
    ThreadNumber, ThreadParts, ThreadView,
    damage::{Cell, DbRow},
    damage_check::{CHECKED_TABLES, MAX_DAMAGED_ROWS, inspect},
    read_permits::ReadKind,
    rows,
    text::name_to_text,
    write::unanswered,
};
use agui_protocol::{ResumeEntry, RunId};

/// Begins a transaction whose statements all see the database as it was at one moment.
pub(super) const BEGIN_SNAPSHOT: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";

/// The longest time in which a check reads a table.
const CHECK_TIMEOUT: Duration = Duration::from_secs(3600);

const THREAD: &str = include_str!("sql/thread.sql");

pub(super) const NODES: &str = include_str!("sql/nodes.sql");

const BRANCH: &str = include_str!("sql/branch.sql");
const SIBLINGS: &str = include_str!("sql/siblings.sql");
const MESSAGES_OF_RUN: &str = include_str!("sql/messages_of_run.sql");

const NEWEST_ATTEMPT: &str = "
    SELECT *, COALESCE((SELECT MAX(last) FROM agui_events WHERE run = number), 0) AS logged
    FROM agui_runs WHERE number = COALESCE(
        (SELECT number FROM agui_runs WHERE thread = $1 AND id = $2 ORDER BY attempt DESC LIMIT 1),
        (SELECT number FROM agui_runs WHERE thread = $1 AND alias = $2 ORDER BY number DESC LIMIT 1))";

const ATTEMPTS: &str = "
    SELECT *, COALESCE((SELECT MAX(last) FROM agui_events WHERE run = number), 0) AS logged
    FROM agui_runs WHERE thread = $1 AND id = $2 ORDER BY attempt";

const RUNS: &str = "
    SELECT *, COALESCE((SELECT MAX(last) FROM agui_events WHERE run = number), 0) AS logged
    FROM agui_runs WHERE thread = $1 ORDER BY number DESC LIMIT $2";

const RUN_STATES: &str = "
    SELECT number, body FROM agui_states WHERE thread = $1 AND number IN
        (SELECT state FROM agui_runs WHERE thread = $1 ORDER BY number DESC LIMIT $2)
    ORDER BY number";

const END_STATE: &str = include_str!("sql/end_state.sql");

const ANSWERED: &str =
    "SELECT answered FROM agui_runs WHERE thread = $1 AND answered IS NOT NULL ORDER BY number";

impl DbRow for PgRow {
    fn text(&self, column: &str) -> StoreResult<Cell<&str>> {
        cell(self.try_get(column))
    }

    fn bytes(&self, column: &str) -> StoreResult<Cell<&[u8]>> {
        cell(self.try_get(column))
    }

    fn number(&self, column: &str) -> StoreResult<Cell<i64>> {
        cell(self.try_get(column))
    }

    fn flag(&self, column: &str) -> StoreResult<Cell<bool>> {
        cell(self.try_get(column))
    }
}

fn cell<T>(value: Result<Option<T>, Error>) -> StoreResult<Cell<T>> {
    match value {
        Err(Error::ColumnDecode { source, .. }) => Ok(Err(source.to_string())),
        value => Ok(Ok(value?)),
    }
}

pub(super) async fn thread(
    pool: &PostgresPool,
    key: &ThreadKey,
    include: ThreadParts,
) -> StoreResult<Option<ThreadView>> {
    let kind = if include.messages { ReadKind::Thread } else { ReadKind::Page };
    let mut operation = pool.read(kind, &key.owner).await?;
    // Otherwise it is one statement.
    if include.messages || include.runs > 0 {
        operation.begin(BEGIN_SNAPSHOT).await?;
    }
    let query =
        sqlx::query(THREAD).bind(&*key.owner).bind(&*name_to_text(&key.id)).bind(include.state);
    let thread =
        operation.first(query).await?.map(|row| rows::thread_with_state(&row)).transpose()?;
    let mut nodes = Vec::new();
    let mut runs = Vec::new();
    let mut states = Vec::new();
    if let Some(thread) = &thread {
        let limit = i64::try_from(include.runs).unwrap_or(i64::MAX);
        if include.messages {
            nodes = operation.all(sqlx::query(NODES).bind(thread.number)).await?;
        }
        if include.runs > 0 {
            runs = operation.all(sqlx::query(RUNS).bind(thread.number).bind(limit)).await?;
        }
        if include.run_states {
            states = operation.all(sqlx::query(RUN_STATES).bind(thread.number).bind(limit)).await?;
        }
    }
    operation.commit().await?;
    let Some(thread) = thread else { return Ok(None) };
    let runs = runs.iter().map(rows::run).collect::<Result<_, _>>()?;
    // The permit is kept until the messages and states are parsed.
    parse(operation, move || {
        let nodes = nodes.iter().map(rows::node).collect::<Result<_, _>>()?;
        let run_states = states.iter().map(rows::numbered_state).collect::<Result<_, _>>()?;
        Ok(Some(ThreadView { thread, nodes, runs, run_states }))
    })
    .await
}

/// Parses rows that can be large, on a thread where no other task waits.
pub(super) async fn parse<T: Send + 'static>(
    operation: Operation,
    parse: impl FnOnce() -> StoreResult<T> + Send + 'static,
) -> StoreResult<T> {
    let permit = operation.into_permit();
    let parsed = tokio::task::spawn_blocking(move || {
        let _permit = permit;
        parse()
    });
    parsed.await.unwrap_or_else(|error| Err(StoreError::Failed(error.into())))
}

pub(super) async fn messages(
    pool: &PostgresPool,
    owner: &str,
    thread: ThreadNumber,
    query: MessageQuery,
) -> StoreResult<MessagePage> {
    let limit = i64::try_from(query.limit).unwrap_or(i64::MAX - 1);
    let select = match query.run {
        None => sqlx::query(BRANCH).bind(thread).bind(query.newest).bind(limit),
        // One message more, which shows whether there is a page before this one.
        Some(run) => {
            sqlx::query(MESSAGES_OF_RUN).bind(thread).bind(query.newest).bind(limit + 1).bind(run)
        }
    };
    let mut operation = pool.read(ReadKind::Page, owner).await?;
    operation.begin(BEGIN_SNAPSHOT).await?;
    let newest_first = operation.all(select).await?;
    let parents = newest_first.iter().map(rows::parent).collect::<StoreResult<Vec<_>>>()?;
    let select = sqlx::query(SIBLINGS).bind(thread).bind(parents);
    let siblings =
        operation.all(select.bind(MessagePage::MAX_SIBLINGS.cast_signed() as i64)).await?;
    operation.commit().await?;
    let siblings = siblings.iter().map(rows::sibling).collect::<Result<_, _>>()?;
    parse(operation, move || {
        let newest_first = newest_first.iter().map(rows::node).collect::<Result<_, _>>()?;
        let mut page = MessagePage::new(newest_first, query);
        page.set_siblings(siblings);
        Ok(page)
    })
    .await
}

pub(super) async fn run(
    pool: &PostgresPool,
    owner: &str,
    thread: ThreadNumber,
    id: &RunId,
) -> StoreResult<Option<RunRecord>> {
    let query = sqlx::query(NEWEST_ATTEMPT).bind(thread).bind(&*name_to_text(id));
    one(pool, owner, query, rows::run).await
}

pub(super) async fn attempts(
    pool: &PostgresPool,
    owner: &str,
    thread: ThreadNumber,
    id: &RunId,
) -> StoreResult<Vec<RunRecord>> {
    let query = sqlx::query(ATTEMPTS).bind(thread).bind(&*name_to_text(id));
    let rows = pool.read(ReadKind::Page, owner).await?.all(query).await?;
    rows.iter().map(rows::run).collect()
}

/// Reads the row that a statement returns, if it returns one.
pub(super) async fn one<T>(
    pool: &PostgresPool,
    owner: &str,
    query: Statement<'_>,
    read: impl FnOnce(&PgRow) -> StoreResult<T>,
) -> StoreResult<Option<T>> {
    pool.read(ReadKind::Page, owner).await?.first(query).await?.map(|row| read(&row)).transpose()
}

pub(super) async fn end_state(
    pool: &PostgresPool,
    owner: &str,
    thread: ThreadNumber,
    by: EndedRun<'_>,
) -> StoreResult<Option<EndState>> {
    let (id, head) = by.columns();
    let query = sqlx::query(END_STATE).bind(thread).bind(id).bind(head);
    let mut operation = pool.read(ReadKind::Page, owner).await?;
    let left = operation.first(query).await?.map(|row| rows::end_state(&row)).transpose()?;
    let Some(left) = left else { return Ok(None) };
    if left.interrupts.is_empty() {
        return Ok(Some(left));
    }
    // This statement runs after the one above, so an interrupt that was answered in between counts as answered.
    let answered = replies(&operation.all(sqlx::query(ANSWERED).bind(thread)).await?)?;
    Ok(Some(EndState { interrupts: unanswered(left.interrupts, answered.iter()), ..left }))
}

pub(super) async fn answered(
    pool: &PostgresPool,
    owner: &str,
    thread: ThreadNumber,
) -> StoreResult<Vec<ResumeEntry>> {
    let mut operation = pool.read(ReadKind::Page, owner).await?;
    replies(&operation.all(sqlx::query(ANSWERED).bind(thread)).await?)
}

fn replies(rows: &[PgRow]) -> StoreResult<Vec<ResumeEntry>> {
    let of_runs = rows.iter().map(|row| rows::list(row, "answered"));
    Ok(of_runs.collect::<StoreResult<Vec<Vec<ResumeEntry>>>>()?.concat())
}

/// The number of rows that a check reads at once. A row can be large.
const FETCH: &str = "FETCH 50 FROM agui_checked";

pub(super) async fn damaged_rows(pool: &PostgresPool) -> StoreResult<Vec<String>> {
    let mut found = Vec::new();
    for (table, sql) in CHECKED_TABLES {
        let mut operation = pool.operation_within(CHECK_TIMEOUT, None).await?;
        operation.begin(BEGIN_SNAPSHOT).await?;
        let declare = format!("DECLARE agui_checked NO SCROLL CURSOR FOR\n{sql}");
        operation.all(sqlx::query(AssertSqlSafe(declare))).await?;
        loop {
            // The statement is not cached, because the next table has other columns.
            let rows = operation.all(sqlx::query(FETCH).persistent(false)).await?;
            for row in &rows {
                found.extend(inspect(table, row)?);
            }
            if rows.is_empty() || found.len() >= MAX_DAMAGED_ROWS {
                break;
            }
        }
        operation.commit().await?;
    }
    Ok(found)
}
