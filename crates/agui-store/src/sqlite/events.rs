//! The logs of runs, in the order of time. A row is a batch of events of one run, and each write
//! appends its rows to the end of the table. A row refers to the run's row before it, and a row of
//! `agui_log_ends` refers to the last one.
//!
//! So a log is read from its end: back to the wanted events in steps of [`EVENTS_PER_SKIP`] events,
//! then row by row.

use rusqlite::{CachedStatement, Connection, Row};

use super::{
    reader::{all, one},
    writer::Tx,
};
use crate::{EventPage, Lease, RunNumber, RunStatus, StoreResult, columns::BatchColumns, rows};

const EVENTS_PER_SKIP: i64 = 512;

/// No row if the lease is not held, a row of NULL if the log is empty.
const HELD_END: &str = "
    SELECT e.row, e.last, e.skip, e.oldest FROM agui_threads AS t LEFT JOIN agui_log_ends AS e ON e.run = t.run
    WHERE t.number = ? AND t.run = ? AND t.holder = ?";
const END: &str = "SELECT row, last, skip, oldest FROM agui_log_ends WHERE run = ?";
const INSERT: &str = "
    INSERT INTO agui_events (run, first, last, previous, skip, body, times) VALUES (?, ?, ?, ?, ?, ?, ?)";
const SET_END: &str = "
    INSERT INTO agui_log_ends (run, row, last, skip, oldest) VALUES (?1, ?2, ?3, ?4, ?2)
    ON CONFLICT (run) DO UPDATE SET row = ?2, last = ?3, skip = ?4";
const RUN: &str = "
    SELECT r.status, r.events, e.row, e.last AS logged FROM agui_runs AS r
    LEFT JOIN agui_log_ends AS e ON e.run = r.number AND (r.has_log = 1 OR r.ended_at IS NULL) WHERE r.number = ?";
const PLACE: &str = "SELECT last, previous, skip FROM agui_events WHERE number = ? AND run = ?";
const READ: &str = "SELECT first, last, body, times FROM agui_events WHERE number = ?";
const BETWEEN: &str = "SELECT number FROM agui_events WHERE number >= ? AND number < ? AND run = ?";
const DELETE: &str = "DELETE FROM agui_events WHERE number = ? AND run = ?";
const DELETE_END: &str = "DELETE FROM agui_log_ends WHERE run = ?";

/// The end of a log. All numbers are numbers of rows, except `last`, which is the number of an
/// event.
#[derive(Default)]
struct LogEnd {
    row: i64,
    last: i64,
    skip: i64,
    oldest: i64,
}

impl LogEnd {
    fn find(conn: &Connection, run: RunNumber) -> StoreResult<Option<Self>> {
        one(conn, END, [run], Self::read)
    }

    fn read(row: &Row<'_>) -> StoreResult<Self> {
        let of = |column| readable(row, column);
        Ok(Self { row: of("row")?, last: of("last")?, skip: of("skip")?, oldest: of("oldest")? })
    }
}

/// Returns a number; 0 if it is damaged, which ends the reading of a log.
fn readable(row: &Row<'_>, column: &str) -> StoreResult<i64> {
    Ok(rows::optional_number(row, column)?.unwrap_or_default())
}

/// Appends the batches whose leases are held. Returns one boolean per batch, `true` if its lease is
/// held.
pub(super) fn append(tx: &Tx<'_>, batches: &[BatchColumns]) -> StoreResult<Vec<bool>> {
    let mut select = tx.conn.prepare_cached(HELD_END)?;
    let mut append = Append::prepare(tx.conn)?;
    let append = |batch: &BatchColumns| {
        let Lease { thread, run, holder } = &batch.lease;
        let end = select.query((thread, run, holder))?.next()?.map(LogEnd::read).transpose()?;
        let Some(end) = end else { return Ok(false) };
        append.run(tx.conn, batch, &end).map(|()| true)
    };
    batches.iter().map(append).collect()
}

/// Appends a batch to the log of a run, unless the log has it. The caller has checked the lease.
pub(super) fn insert(tx: &Tx<'_>, batch: &BatchColumns) -> StoreResult<()> {
    let end = LogEnd::find(tx.conn, batch.lease.run)?.unwrap_or_default();
    Append::prepare(tx.conn)?.run(tx.conn, batch, &end)
}

/// The statements of an append, found once for all batches of a write.
struct Append<'c> {
    insert: CachedStatement<'c>,
    set_end: CachedStatement<'c>,
}

impl<'c> Append<'c> {
    fn prepare(conn: &'c Connection) -> StoreResult<Self> {
        Ok(Self { insert: conn.prepare_cached(INSERT)?, set_end: conn.prepare_cached(SET_END)? })
    }

    fn run(&mut self, conn: &Connection, batch: &BatchColumns, end: &LogEnd) -> StoreResult<()> {
        let BatchColumns { lease, first, last, body, times } = batch;
        if last < first || end.last >= *last {
            return Ok(());
        }
        let begins_step = end.last / EVENTS_PER_SKIP != last / EVENTS_PER_SKIP;
        let skip = if begins_step { end.row } else { end.skip };
        self.insert.execute((lease.run, first, last, end.row, skip, body, times))?;
        self.set_end.execute((lease.run, conn.last_insert_rowid(), last, skip))?;
        Ok(())
    }
}

/// The place of a row of a log.
struct Place {
    number: i64,
    last: i64,
    /// The run's row before it; 0 if there is none.
    previous: i64,
    /// An older row of the run, at most [`EVENTS_PER_SKIP`] events and one batch before this one; 0
    /// if there is none.
    skip: i64,
}

impl Place {
    fn find(conn: &Connection, number: i64, run: RunNumber) -> StoreResult<Option<Self>> {
        one(conn, PLACE, (number, run), |row| {
            let of = |column| readable(row, column);
            Ok(Self { number, last: of("last")?, previous: of("previous")?, skip: of("skip")? })
        })
    }

    /// Finds a row that this one refers to. It must be older, so that a damaged number makes no
    /// endless loop.
    fn older(&self, conn: &Connection, number: i64, run: RunNumber) -> StoreResult<Option<Self>> {
        if number < self.number { Self::find(conn, number, run) } else { Ok(None) }
    }
}

pub(super) fn read(
    conn: &Connection,
    run: RunNumber,
    after: u64,
    mut space: usize,
) -> StoreResult<Option<EventPage>> {
    let tx = conn.unchecked_transaction()?;
    let page = |row: &Row<'_>| {
        let status = rows::status(rows::text(row, "status")?);
        let logged =
            rows::optional_number::<i64>(row, "logged")?.unwrap_or_default().cast_unsigned();
        let count = if status == RunStatus::Running { logged } else { rows::count(row, "events")? };
        let end = rows::optional_number(row, "row")?.filter(|_| logged > after);
        Ok((EventPage::new(after, status, count), end))
    };
    let Some((mut page, end)) = one(&tx, RUN, [run], page)? else { return Ok(None) };
    let mut places = Vec::new();
    let mut place = end.map(|end| Place::find(&tx, end, run)).transpose()?.flatten();
    while let Some(found) = place {
        let skipped = found.older(&tx, found.skip, run)?;
        places.push(found);
        place = skipped.filter(|place| place.last.cast_unsigned() > after);
    }
    while let Some(newest) = places.pop() {
        let next = (page.first + page.events.len() as u64).cast_signed();
        for number in rows_back_to(&tx, run, newest, next)?.into_iter().rev() {
            let has_space = one(&tx, READ, [number], |row| page.extend(row, &mut space))?;
            if has_space != Some(true) {
                return Ok(Some(page));
            }
        }
    }
    Ok(Some(page))
}

/// Returns the rows from this one back to the oldest with an event or later events, the newest
/// first. Batches may repeat events. The first copy counts.
fn rows_back_to(
    conn: &Connection,
    run: RunNumber,
    newest: Place,
    event: i64,
) -> StoreResult<Vec<i64>> {
    let (mut numbers, mut place) = (Vec::new(), Some(newest));
    while let Some(found) = place {
        numbers.push(found.number);
        place = found.older(conn, found.previous, run)?.filter(|older| older.last >= event);
    }
    Ok(numbers)
}

/// Returns the numbers of the rows of logs, with their runs, in the order of time.
pub(super) fn rows_of(conn: &Connection, runs: &[RunNumber]) -> StoreResult<Vec<(i64, RunNumber)>> {
    let mut found = Vec::new();
    for run in runs {
        let Some(end) = LogEnd::find(conn, *run)? else { continue };
        let newest = Place::find(conn, end.row, *run)?;
        let numbers = newest
            .map(|newest| rows_back_to(conn, *run, newest, i64::MIN))
            .transpose()?
            .unwrap_or_default();
        let oldest = numbers.last().copied().unwrap_or(end.row.saturating_add(1));
        found.extend(numbers.into_iter().map(|number| (number, *run)));
        if oldest > end.oldest {
            // A row between the two is damaged, or a deletion was interrupted.
            let others = all(conn, BETWEEN, (end.oldest, oldest, run), |row| Ok(row.get(0)?))?;
            found.extend(others.into_iter().map(|number| (number, *run)));
        }
    }
    found.sort_unstable();
    Ok(found)
}

/// Deletes rows of logs. After its number was read, a row may have become another run's row.
pub(super) fn delete_rows(tx: &Tx<'_>, rows: &[(i64, RunNumber)]) -> StoreResult<()> {
    rows.iter().try_for_each(|row| tx.execute(DELETE, *row).map(drop))
}

/// Forgets logs whose rows are deleted.
pub(super) fn delete_ends(tx: &Tx<'_>, runs: &[RunNumber]) -> StoreResult<()> {
    runs.iter().try_for_each(|run| tx.execute(DELETE_END, [run]).map(drop))
}
