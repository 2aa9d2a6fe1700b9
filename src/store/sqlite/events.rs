//! The logs of runs: a row is a batch of events. Batches of many runs are written in one transaction.

use rusqlite::{Connection, OptionalExtension as _, params};

use super::writer::Tx;
use crate::store::{
    EventBatch, EventPage, Lease, RunStart, RunStatus, StoreError,
    rows::status,
    text::{from_json, lines, times},
};

const INSERT: &str = "
    INSERT INTO agui_events (run, last, first, body, times) SELECT ?1, ?2, ?3, ?4, ?5
    WHERE NOT EXISTS (SELECT 1 FROM agui_events WHERE run = ?1 AND last >= ?2)";
const HAS_LEASE: &str = "SELECT 1 FROM agui_threads WHERE number = ?1 AND run = ?2 AND holder = ?3";
const RUN: &str =
    "SELECT status, events, (SELECT MAX(last) FROM agui_events WHERE run = ?1) FROM agui_runs WHERE number = ?1";
const READ: &str = "SELECT first, body, times FROM agui_events WHERE run = ?1 AND last > ?2 ORDER BY last";
const START: &str = "
    SELECT s.head, st.body, s.request FROM agui_run_starts AS s JOIN agui_runs AS r ON r.number = s.run
    LEFT JOIN agui_states AS st ON st.thread = r.thread AND st.number = s.state
    WHERE s.run = ?1";

pub(super) struct BatchColumns {
    lease: Lease,
    first: u64,
    last: u64,
    body: String,
    times: String,
}

impl BatchColumns {
    pub(super) fn new(batch: &EventBatch) -> Result<Self, StoreError> {
        let last = (batch.first + batch.events.len() as u64).saturating_sub(1);
        let (body, times) = (lines(&batch.events)?, times(batch)?);
        Ok(Self { lease: batch.lease.clone(), first: batch.first, last, body, times })
    }
}

pub(super) fn append(tx: &mut Tx<'_>, batches: &[BatchColumns]) -> Result<Vec<bool>, StoreError> {
    let append = |batch: &BatchColumns| {
        let Lease { thread, run, holder } = &batch.lease;
        let has_lease = tx.conn.prepare_cached(HAS_LEASE)?.exists(params![thread, run, holder])?;
        if has_lease {
            insert(tx, batch)?;
        }
        Ok(has_lease)
    };
    batches.iter().map(append).collect()
}

/// Appends a batch to the log of a run. The caller has checked the lease.
pub(super) fn insert(tx: &Tx<'_>, batch: &BatchColumns) -> Result<(), StoreError> {
    if batch.last >= batch.first {
        let mut insert = tx.conn.prepare_cached(INSERT)?;
        insert.execute(params![batch.lease.run, batch.last, batch.first, batch.body, batch.times])?;
    }
    Ok(())
}

pub(super) fn read(conn: &Connection, run: i64, after: u64, mut room: usize) -> Result<Option<EventPage>, StoreError> {
    let tx = conn.unchecked_transaction()?;
    let found = tx.prepare_cached(RUN)?.query_row([run], |row| {
        Ok((status(row.get_ref(0)?.as_str()?), row.get::<_, u64>(1)?, row.get::<_, Option<u64>>(2)?.unwrap_or(0)))
    });
    let Some((status, sent, logged)) = found.optional()? else { return Ok(None) };
    let count = if status == RunStatus::Running { logged } else { sent };
    let first = after.saturating_add(1);
    let mut page = EventPage { first, events: Vec::new(), times: Vec::new(), status, count };
    let mut select = tx.prepare_cached(READ)?;
    let mut batches = select.query(params![run, i64::try_from(after).unwrap_or(i64::MAX)])?;
    while let Some(batch) = batches.next()? {
        if !page.extend(batch.get(0)?, batch.get_ref(1)?.as_str()?, batch.get_ref(2)?.as_str()?, &mut room) {
            break;
        }
    }
    Ok(Some(page))
}

pub(super) fn start(conn: &Connection, run: i64) -> Result<Option<RunStart>, StoreError> {
    let found = conn.prepare_cached(START)?.query_row([run], |row| {
        Ok((row.get::<_, i64>(0)?, row.get::<_, Option<String>>(1)?, row.get::<_, String>(2)?))
    });
    let Some((head, state, request)) = found.optional()? else { return Ok(None) };
    Ok(Some(RunStart { head, state: state.as_deref().map(from_json).transpose()?, request }))
}
