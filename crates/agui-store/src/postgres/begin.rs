//! Begins a run with one statement. If it writes nothing, a second statement finds the reason.

use sqlx::{Row as _, postgres::PgRow};

use super::{
    file_rows::use_files,
    pool::{Operation, PostgresPool},
    words::INDEXING,
};
use crate::{
    BeginOutcome, Begun, Lease, NewRun, StoreResult, ThreadSize, ThreadVersion,
    columns::BeginColumns, rows, text::to_json,
};

const BEGIN_NEW: &str = include_str!("sql/begin_new.sql");
const BEGIN: &str = include_str!("sql/begin.sql");

const FIND: &str = include_str!("sql/find.sql");
/// Returns no row if the queued run is gone, else whether another process holds one before the first of this process.
const IS_BEHIND: &str = "
    SELECT EXISTS (SELECT 1 FROM agui_queued_runs AS other
        WHERE other.thread = q.thread AND other.holder <> $2 AND other.number < COALESCE((
            SELECT MIN(own.number) FROM agui_queued_runs AS own WHERE own.thread = q.thread AND own.holder = $2), q.number))
    FROM agui_queued_runs AS q WHERE q.number = $1";
const KNOWN_RUN: &str = include_str!("sql/known_run.sql");

pub(super) async fn begin(pool: &PostgresPool, run: &NewRun<'_>) -> StoreResult<BeginOutcome> {
    let new = BeginColumns::new(run, INDEXING)?;
    let sql = if run.expected.is_some() { BEGIN } else { BEGIN_NEW };
    if let (Some(queued), None) = (run.queued, run.expected) {
        // A queued run is on a thread, which the caller has to read.
        let is_queued = pool.first(sqlx::query(IS_BEHIND).bind(queued).bind(&**run.holder)).await?;
        return Ok(is_queued.map_or(BeginOutcome::Dequeued, |_| BeginOutcome::Changed));
    }
    let size = new.branch.size_after(ThreadSize::default());
    if run.expected.is_none() && size.exceeds(run.max_size) {
        return Ok(BeginOutcome::TooLarge(size));
    }
    let mut operation = pool.write(&new.owner, new.bytes()).await?;
    if !new.branch.files.is_empty() {
        operation.begin("BEGIN").await?;
    }
    if let Some(row) = operation.first(sqlx::query(sql).bind(to_json(&new))).await? {
        let thread = row.try_get(0)?;
        use_files(&mut operation, thread, &new.branch.files).await?;
        operation.commit().await?;
        return Ok(BeginOutcome::Begun(Begun {
            lease: Lease { thread, run: row.try_get(1)?, holder: new.holder },
            version: run.expected.map_or(1, |known| known.version + 1),
            last_message: row.try_get(2)?,
            state_number: row.try_get(3)?,
        }));
    }
    operation.commit().await?;
    let found = operation.first(sqlx::query(FIND).bind(&*new.owner).bind(&new.id)).await?;
    match found {
        Some(row) => refusal(&mut operation, &row, &new).await,
        None if new.queued.is_some() => Ok(BeginOutcome::Dequeued),
        None => Ok(BeginOutcome::Changed),
    }
}

/// Returns the reason why nothing was written, from the row of the thread and its newest run.
async fn refusal(
    operation: &mut Operation,
    row: &PgRow,
    new: &BeginColumns,
) -> StoreResult<BeginOutcome> {
    let is_behind = match new.queued {
        None => false,
        Some(queued) => {
            let queued = sqlx::query(IS_BEHIND).bind(queued).bind(&*new.holder);
            let Some(row) = operation.first(queued).await? else {
                return Ok(BeginOutcome::Dequeued);
            };
            row.try_get(0)?
        }
    };
    let run = rows::run(row)?;
    if let Some(holder) = row.try_get::<Option<String>, _>("holder")? {
        let is_lost =
            row.try_get::<Option<i64>, _>("lease_until")?.is_none_or(|until| until < new.now);
        let lease = Lease { thread: run.thread, run: run.number, holder: holder.into() };
        return Ok(BeginOutcome::Busy { run, lost: is_lost.then_some(lease) });
    }
    if is_behind {
        return Ok(BeginOutcome::Behind);
    }
    let version =
        ThreadVersion { number: run.thread, version: rows::count(row, "version")?.cast_signed() };
    if new.expected != Some(version) {
        return Ok(BeginOutcome::Changed);
    }
    if let Some(asked) = &new.asked {
        let known = sqlx::query(KNOWN_RUN).bind(run.thread).bind(&new.run_id).bind(asked);
        if let Some(row) = operation.first(known.bind(new.known)).await? {
            return Ok(BeginOutcome::Known(Box::new(rows::run(&row)?)));
        }
    }
    let size = new.branch.size_after(rows::size(row)?);
    let is_too_large = size.exceeds(new.max_size);
    Ok(if is_too_large { BeginOutcome::TooLarge(size) } else { BeginOutcome::Changed })
}
