//! The logs of runs: a row is a batch of events. Batches of many runs are written in one transaction.

use rusqlite::{Connection, Row};

use super::{reader::one, writer::Tx};
use crate::store::{EventPage, Lease, RunStatus, StoreResult, columns::BatchColumns, rows};

const INSERT: &str = "
    INSERT INTO agui_events (run, last, first, body, times) SELECT ?1, ?2, ?3, ?4, ?5
    WHERE NOT EXISTS (SELECT 1 FROM agui_events WHERE run = ?1 AND last >= ?2)";
const HAS_LEASE: &str = "SELECT 1 FROM agui_threads WHERE number = ? AND run = ? AND holder = ?";
const RUN: &str = "
    SELECT status, events, (SELECT MAX(last) FROM agui_events WHERE run = number) AS logged
    FROM agui_runs WHERE number = ?";
const READ: &str = "SELECT first, last, body, times FROM agui_events WHERE run = ? AND last > ? ORDER BY last";

pub(super) fn append(tx: &mut Tx<'_>, batches: &[BatchColumns]) -> StoreResult<Vec<bool>> {
    let append = |batch: &BatchColumns| {
        let Lease { thread, run, holder } = &batch.lease;
        let has_lease = tx.conn.prepare_cached(HAS_LEASE)?.exists((thread, run, holder))?;
        if has_lease && batch.last >= batch.first {
            insert(tx, batch)?;
        }
        Ok(has_lease)
    };
    batches.iter().map(append).collect()
}

/// Appends a batch to the log of a run. The caller has checked the lease.
pub(super) fn insert(tx: &Tx<'_>, batch: &BatchColumns) -> StoreResult<()> {
    tx.execute(INSERT, (batch.lease.run, batch.last, batch.first, &batch.body, &batch.times)).map(drop)
}

pub(super) fn read(conn: &Connection, run: i64, after: u64, mut space: usize) -> StoreResult<Option<EventPage>> {
    let tx = conn.unchecked_transaction()?;
    let page = |row: &Row<'_>| {
        let status = rows::status(rows::text(row, "status")?);
        let count = match status {
            RunStatus::Running => rows::optional_number(row, "logged")?.unwrap_or_default().cast_unsigned(),
            _ => rows::count(row, "events")?,
        };
        Ok(EventPage::new(after, status, count))
    };
    let Some(mut page) = one(&tx, RUN, [run], page)? else { return Ok(None) };
    let mut select = tx.prepare_cached(READ)?;
    let mut batches = select.query((run, i64::try_from(after).unwrap_or(i64::MAX)))?;
    while let Some(batch) = batches.next()? {
        if !page.extend(batch, &mut space)? {
            break;
        }
    }
    Ok(Some(page))
}
