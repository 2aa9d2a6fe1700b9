//! Ends a run, and the other writes to a run: its messages and state, its delivery, its lease.

use std::sync::Arc;

use rusqlite::{OptionalExtension as _, params};

use super::{
    events::{self, BatchColumns},
    search,
    writer::Tx,
};
use crate::store::{
    FinishedRun, Lease, Millis, RunEnd, StoreError,
    text::{BranchColumns, list_to_json, to_json},
};

const FIND_LEASED: &str = "
    SELECT version, messages, bytes, state FROM agui_threads WHERE number = ?1 AND run = ?2 AND holder = ?3";
const UPDATE_THREAD: &str = "
    UPDATE agui_threads SET holder = NULL, head = ?2, state = ?3, interrupts = ?4, messages = ?5, bytes = ?6,
        version = ?7, updated_at = ?8
    WHERE number = ?1";

const END_RUN: &str = "
    UPDATE agui_runs SET status = ?2, delivered = ?3, head = ?4, state = ?5, interrupts = ?6, ended_at = ?7,
        events = ?8, usage = ?9, failure = ?10,
        has_log = detached AND (EXISTS (SELECT 1 FROM agui_events WHERE run = ?1)
            OR EXISTS (SELECT 1 FROM agui_run_starts WHERE run = ?1))
    WHERE number = ?1";

const IS_REPEATED: &str = "
    SELECT 1 FROM agui_runs WHERE number = ?1 AND thread = ?2 AND status = ?3 AND ended_at = ?4";

const INSERT_MESSAGE: &str =
    "INSERT INTO agui_messages (thread, number, parent, id, role, run, body) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
const ADD_BYTES: &str = "
    UPDATE agui_threads SET bytes = bytes + ?3
        - (SELECT length(CAST(body AS BLOB)) FROM agui_messages WHERE thread = ?1 AND number = ?2)
    WHERE number = ?1";
const UPDATE_MESSAGE: &str = "UPDATE agui_messages SET body = ?3 WHERE thread = ?1 AND number = ?2";
const INSERT_STATE: &str = "INSERT INTO agui_states (thread, number, body) VALUES (?1, ?2, ?3)";

const SET_DELIVERED: &str = "UPDATE agui_runs SET delivered = ?2 WHERE number = ?1";
const RAISE_VERSION: &str = "UPDATE agui_threads SET version = version + 1 WHERE number = ?1 RETURNING version";
const TAKE_OVER: &str = "UPDATE agui_threads SET holder = ?4 WHERE number = ?1 AND run = ?2 AND holder = ?3";

pub(super) struct FinishColumns {
    lease: Lease,
    status: &'static str,
    ended_at: Millis,
    events: u64,
    usage: Option<String>,
    failure: Option<String>,
    branch: BranchColumns,
    state: Option<String>,
    interrupts: Option<String>,
    delivered: bool,
    last_events: Option<BatchColumns>,
}

impl FinishColumns {
    pub(super) fn new(lease: &Lease, end: &RunEnd<'_>) -> Result<Self, StoreError> {
        Ok(Self {
            lease: lease.clone(),
            status: end.status.as_str(),
            ended_at: end.ended_at,
            events: end.events,
            usage: list_to_json(end.usage),
            failure: end.failure.map(to_json),
            branch: BranchColumns::new(&end.branch),
            state: end.state.map(to_json),
            interrupts: list_to_json(end.interrupts),
            delivered: end.delivered,
            last_events: end.last_events.map(BatchColumns::new).transpose()?,
        })
    }
}

pub(super) fn finish(tx: &mut Tx<'_>, end: &FinishColumns) -> Result<Option<FinishedRun>, StoreError> {
    let Lease { thread, run, holder } = &end.lease;
    let leased = tx.conn.prepare_cached(FIND_LEASED)?.query_row(params![thread, run, holder], |row| {
        let [version, last_message] = [row.get(0)?, row.get(1)?];
        Ok(FinishedRun { version, last_message, bytes: row.get(2)?, state_number: row.get(3)? })
    });
    let Some(before) = leased.optional()? else {
        let is_repeated =
            tx.conn.prepare_cached(IS_REPEATED)?.exists(params![run, thread, end.status, end.ended_at])?;
        return if is_repeated { Ok(None) } else { Err(StoreError::LeaseLost) };
    };
    let new_state = end.state.as_ref().map(|_| state_number(*run, 1));
    let count = end.branch.ids.len() as i64;
    let done = FinishedRun {
        version: before.version + 1,
        last_message: before.last_message + count,
        bytes: before.bytes + end.branch.bytes + end.state.as_ref().map_or(0, String::len) as u64,
        state_number: new_state.or(before.state_number),
    };
    let head = if count == 0 { end.branch.base } else { done.last_message };
    let FinishedRun { version, last_message, bytes, state_number: state } = done;
    tx.conn.prepare_cached(UPDATE_THREAD)?.execute(params![
        thread,
        head,
        state,
        end.interrupts,
        last_message,
        bytes,
        version,
        end.ended_at
    ])?;
    write_branch(tx, *thread, before.last_message + 1, &end.branch)?;
    write_state(tx, *thread, new_state, end.state.as_deref())?;
    if let Some(last) = &end.last_events {
        events::insert(tx, last)?;
    }
    tx.conn.prepare_cached(END_RUN)?.execute(params![
        run,
        end.status,
        end.delivered,
        head,
        state,
        end.interrupts,
        end.ended_at,
        end.events,
        end.usage,
        end.failure
    ])?;
    Ok(Some(done))
}

pub(super) fn write_branch(tx: &mut Tx<'_>, thread: i64, first: i64, branch: &BranchColumns) -> Result<(), StoreError> {
    let mut parent = branch.base;
    let mut insert = tx.conn.prepare_cached(INSERT_MESSAGE)?;
    for (at, number) in (0..branch.ids.len()).zip(first..) {
        let (id, role, run, body) = (&branch.ids[at], branch.roles[at], branch.runs[at], &branch.bodies[at]);
        insert.execute(params![thread, number, parent, id, role, run, body])?;
        parent = number;
    }
    for (number, body) in branch.updated_numbers.iter().zip(&branch.updated_bodies) {
        let was_indexed = search::remove_message(tx, thread, *number)?;
        tx.conn.prepare_cached(ADD_BYTES)?.execute(params![thread, number, body.len() as i64])?;
        tx.conn.prepare_cached(UPDATE_MESSAGE)?.execute(params![thread, number, body])?;
        if was_indexed {
            search::add_message(tx, thread, *number)?;
        }
    }
    Ok(())
}

/// Returns the number of a state: `part` is 0 for the state that a run starts from, 1 for the one it ends with.
pub(super) fn state_number(run: i64, part: i64) -> i64 {
    2 * run + part
}

pub(super) fn write_state(
    tx: &mut Tx<'_>,
    thread: i64,
    number: Option<i64>,
    body: Option<&str>,
) -> Result<(), StoreError> {
    if let (Some(number), Some(body)) = (number, body) {
        tx.conn.prepare_cached(INSERT_STATE)?.execute(params![thread, number, body])?;
    }
    Ok(())
}

pub(super) fn set_delivered(
    tx: &mut Tx<'_>,
    thread: i64,
    run: i64,
    delivered: bool,
) -> Result<Option<i64>, StoreError> {
    tx.conn.prepare_cached(SET_DELIVERED)?.execute(params![run, delivered])?;
    Ok(tx.conn.prepare_cached(RAISE_VERSION)?.query_row([thread], |row| row.get(0)).optional()?)
}

pub(super) fn take_over(tx: &mut Tx<'_>, lost: &Lease, holder: &Arc<str>) -> Result<Option<Lease>, StoreError> {
    if lost.holder == *holder {
        return Ok(None);
    }
    let mut take_over = tx.conn.prepare_cached(TAKE_OVER)?;
    let taken = take_over.execute(params![lost.thread, lost.run, lost.holder, holder])? > 0;
    Ok(taken.then(|| Lease { holder: holder.clone(), ..lost.clone() }))
}
