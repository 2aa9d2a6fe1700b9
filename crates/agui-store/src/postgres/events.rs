//! The logs of runs: a row is a batch of events. Batches of many runs are written with one statement.

use std::collections::BTreeMap;

use sqlx::Row as _;

use super::pool::PostgresPool;
use crate::{
    EventBatch, EventPage, RunNumber, RunStatus, StoreResult, columns::BatchColumns,
    read_permits::ReadKind, rows,
};

const APPEND: &str = include_str!("sql/append.sql");
const PROMOTE: &str = include_str!("sql/promote.sql");
const EVENTS: &str = include_str!("sql/events.sql");
/// The maximum number of batches of a run that the statement reads.
const MAX_BATCHES: usize = 256;

/// Returns one boolean per batch, `true` if its events are in the log, and the followed runs.
pub(super) async fn append(
    pool: &PostgresPool,
    batches: &[EventBatch],
) -> StoreResult<(Vec<bool>, Vec<RunNumber>)> {
    let batches = batches.iter().map(BatchColumns::new).collect::<Result<Vec<_>, _>>()?;
    let numbers = |of: fn(&BatchColumns) -> i64| batches.iter().map(of).collect::<Vec<_>>();
    let texts = |of: fn(&BatchColumns) -> &str| batches.iter().map(of).collect::<Vec<_>>();
    // Arrays in place of JSON, which would escape each line again.
    let query = sqlx::query(APPEND)
        .bind(numbers(|batch| batch.lease.thread.0))
        .bind(numbers(|batch| batch.lease.run.0))
        .bind(texts(|batch| &batch.lease.holder))
        .bind(numbers(|batch| batch.first))
        .bind(numbers(|batch| batch.last))
        .bind(texts(|batch| &batch.body))
        .bind(texts(|batch| &batch.times));
    let (mut appended, mut followed) = (vec![false; batches.len()], Vec::new());
    for row in pool.all(query).await? {
        let position = usize::try_from(row.try_get::<i64, _>(0)? - 1).unwrap_or(usize::MAX);
        let Some((appended, batch)) = appended.get_mut(position).zip(batches.get(position)) else {
            continue;
        };
        *appended = true;
        if row.try_get(1)? {
            followed.push(batch.lease.run);
        }
    }
    Ok((appended, followed))
}

/// Makes a running run a detached one. Returns whether the run is followed; `None` if its lease was
/// lost.
pub(super) async fn promote(
    pool: &PostgresPool,
    request: Option<&str>,
    first: &BatchColumns,
) -> StoreResult<Option<bool>> {
    let BatchColumns { lease, first, last, body, times } = first;
    let query = sqlx::query(PROMOTE)
        .bind(lease.thread)
        .bind(lease.run)
        .bind(&*lease.holder)
        .bind(request)
        .bind(first)
        .bind(last)
        .bind(body)
        .bind(times);
    pool.first(query).await?.map(|row| Ok(row.try_get(0)?)).transpose()
}

pub(super) async fn read(
    pool: &PostgresPool,
    owner: &str,
    after: &BTreeMap<RunNumber, u64>,
    max_bytes: usize,
) -> StoreResult<BTreeMap<RunNumber, EventPage>> {
    let to_number = |n| i64::try_from(n).unwrap_or(i64::MAX);
    let (runs, starts): (Vec<_>, Vec<_>) =
        after.iter().map(|(run, after)| (*run, to_number(*after))).unzip();
    let with_count = after.len() == 1;
    let query = sqlx::query(EVENTS)
        .bind(runs)
        .bind(starts)
        .bind(to_number(max_bytes as u64).max(1))
        .bind(with_count);
    let rows = pool.read(ReadKind::Page, owner).await?.all(query).await?;
    let mut pages = BTreeMap::new();
    for rows in rows.chunk_by(|one, other| one.try_get::<i64, _>(0).ok() == other.try_get(0).ok()) {
        let Some(row) = rows.first() else { continue };
        let run = row.try_get(0)?;
        let (status, count) =
            (rows::status(rows::text(row, "status")?), rows::count(row, "count")?);
        let mut page = EventPage::new(after.get(&run).copied().unwrap_or_default(), status, count);
        let mut space = max_bytes;
        let mut bytes = 0;
        let mut is_cut = rows.len() == MAX_BATCHES;
        for row in rows {
            // A run without further events has one row, of NULLs.
            if row.try_get::<Option<i64>, _>("first")?.is_none() {
                break;
            }
            bytes += row.try_get::<Option<&str>, _>("body")?.map_or(0, str::len);
            if !page.extend(row, &mut space)? {
                is_cut = true;
                break;
            }
        }
        if !with_count && status == RunStatus::Running {
            let last = page.first - 1 + page.events.len() as u64;
            page.count = last + u64::from(is_cut || bytes >= max_bytes);
        }
        pages.insert(run, page);
    }
    Ok(pages)
}
