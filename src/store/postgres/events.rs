//! The logs of runs: a row is a batch of events. Batches of many runs are written with one statement.

use sqlx::Row as _;

use super::pool::PostgresPool;
use crate::store::{EventBatch, EventPage, StoreResult, columns::BatchColumns, read_permits::ReadKind, rows};

const APPEND: &str = include_str!("sql/append.sql");
const EVENTS: &str = include_str!("sql/events.sql");

pub(super) async fn append(pool: &PostgresPool, batches: &[EventBatch]) -> StoreResult<Vec<bool>> {
    let batches = batches.iter().map(BatchColumns::new).collect::<Result<Vec<_>, _>>()?;
    let numbers = |of: fn(&BatchColumns) -> i64| batches.iter().map(of).collect::<Vec<_>>();
    let texts = |of: fn(&BatchColumns) -> &str| batches.iter().map(of).collect::<Vec<_>>();
    // Arrays and no JSON, which would escape each line once more.
    let query = sqlx::query(APPEND).bind(numbers(|it| it.lease.thread)).bind(numbers(|it| it.lease.run));
    let query = query.bind(texts(|it| &it.lease.holder)).bind(numbers(|it| it.first)).bind(numbers(|it| it.last));
    let query = query.bind(texts(|it| &it.body)).bind(texts(|it| &it.times));
    let mut appended = vec![false; batches.len()];
    for row in pool.all(query).await? {
        let position = usize::try_from(row.try_get::<i64, _>(0)? - 1).unwrap_or(usize::MAX);
        if let Some(appended) = appended.get_mut(position) {
            *appended = true;
        }
    }
    Ok(appended)
}

pub(super) async fn read(
    pool: &PostgresPool,
    owner: &str,
    run: i64,
    after: u64,
    max_bytes: usize,
) -> StoreResult<Option<EventPage>> {
    let [start, space] = [i64::try_from(after), i64::try_from(max_bytes)].map(|n| n.unwrap_or(i64::MAX));
    let rows = pool
        .read(ReadKind::Page, owner)
        .await?
        .all(sqlx::query(EVENTS).bind(run).bind(start).bind(space.max(1)))
        .await?;
    let Some(row) = rows.first() else { return Ok(None) };
    let (status, count) = (rows::status(rows::text(row, "status")?), rows::count(row, "count")?);
    let mut page = EventPage::new(after, status, count);
    let mut space = max_bytes;
    for row in &rows {
        // A run without a log has one row, of NULLs.
        if row.try_get::<Option<i64>, _>("first")?.is_none() || !page.extend(row, &mut space)? {
            break;
        }
    }
    Ok(Some(page))
}
