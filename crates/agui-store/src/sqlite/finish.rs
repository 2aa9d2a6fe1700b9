//! Ends a run, and writes the messages and the state of a run that begins or ends.

use rusqlite::named_params;

use super::{events, file_rows::use_files, reader::one, search, writer::Tx};
use crate::{
    FinishedRun, Lease, MessageNumber, RunNumber, StateNumber, StoreError, StoreResult,
    ThreadNumber,
    columns::{BranchColumns, FinishColumns, MessageColumns},
    rows,
};

const FIND_LEASED: &str = "
    SELECT version, messages, bytes, state FROM agui_threads WHERE number = ? AND run = ? AND holder = ?";
const FINISH_THREAD: &str = include_str!("sql/finish_thread.sql");
const FINISH_RUN: &str = include_str!("sql/finish_run.sql");
const HAS_ENDED: &str =
    "SELECT 1 FROM agui_runs WHERE number = ? AND thread = ? AND status = ? AND ended_at = ?";

pub(super) const INSERT_MESSAGE: &str = "
    INSERT INTO agui_messages (thread, number, parent, id, role, run, body, feedback)
    VALUES (:thread, :number, :parent, :id, :role, :run, :body, :feedback)";
const ADD_BYTES: &str = include_str!("sql/add_bytes.sql");
const UPDATE_MESSAGE: &str =
    "UPDATE agui_messages SET body = :body WHERE thread = :thread AND number = :number";
const INSERT_STATE: &str =
    "INSERT INTO agui_states (thread, number, body) VALUES (:thread, :number, :body)";

pub(super) fn finish(tx: &mut Tx<'_>, end: &FinishColumns) -> StoreResult<Option<FinishedRun>> {
    let Lease { thread, run, holder } = &end.lease;
    let leased = one(tx.conn, FIND_LEASED, (thread, run, holder), |row| {
        let version = rows::count(row, "version")?.cast_signed();
        let last_message = MessageNumber(rows::count(row, "messages")?.cast_signed());
        let state_number = rows::optional_number(row, "state")?;
        Ok(FinishedRun { version, last_message, bytes: rows::count(row, "bytes")?, state_number })
    });
    let Some(before) = leased? else {
        let has_ended =
            tx.conn.prepare_cached(HAS_ENDED)?.exists((run, thread, end.status, end.ended_at))?;
        return if has_ended { Ok(None) } else { Err(StoreError::LeaseLost) };
    };
    let new_state = end.branch.state.as_ref().map(|_| state_number(*run, 1));
    let (head, last_message) = ends(&end.branch, before.last_message);
    let done = FinishedRun {
        version: before.version + 1,
        last_message,
        bytes: before.bytes + end.branch.bytes,
        state_number: new_state.or(before.state_number),
    };
    tx.execute(
        FINISH_THREAD,
        named_params! {
            ":thread": thread, ":head": head, ":state": done.state_number, ":interrupts": end.branch.interrupts,
            ":messages": last_message, ":bytes": done.bytes, ":version": done.version, ":ended_at": end.ended_at,
        },
    )?;
    write_branch(tx, *thread, before.last_message, &end.branch)?;
    write_state(tx, *thread, new_state, end.branch.state.as_deref())?;
    if let Some(last) = &end.last_events {
        events::insert(tx, last)?;
    }
    tx.execute(
        FINISH_RUN,
        named_params! {
            ":run": run, ":status": end.status, ":delivered": end.delivered, ":head": head, ":state": done.state_number,
            ":interrupts": end.branch.interrupts, ":ended_at": end.ended_at, ":events": end.events, ":usage": end.usage,
            ":failure": end.failure, ":end_reason": end.end_reason, ":has_unsafe_calls": end.has_unsafe_calls,
        },
    )?;
    Ok(Some(done))
}

/// Returns the head and the last message of a thread that had `before` messages, after this write.
pub(super) fn ends(
    branch: &BranchColumns,
    before: MessageNumber,
) -> (MessageNumber, MessageNumber) {
    let last = before.plus(branch.messages.len());
    (if branch.messages.is_empty() { branch.base } else { last }, last)
}

/// Writes messages to a thread that had `before` messages.
pub(super) fn write_branch(
    tx: &Tx<'_>,
    thread: ThreadNumber,
    before: MessageNumber,
    branch: &BranchColumns,
) -> StoreResult<()> {
    use_files(tx, thread, &branch.files)?;
    let mut parent = branch.base;
    for MessageColumns { number, id, role, run, body, .. } in &branch.messages {
        let number = MessageNumber(before.0 + number.0);
        tx.execute(INSERT_MESSAGE, named_params! {
            ":thread": thread, ":number": number, ":parent": parent, ":id": id, ":role": role, ":run": run, ":body": body,
        })?;
        parent = number;
    }
    for MessageColumns { number, body, .. } in &branch.updated {
        let was_indexed = search::write_indexed(tx, search::REMOVE, thread, *number)?;
        let length = body.len() as i64;
        tx.execute(
            ADD_BYTES,
            named_params! { ":thread": thread, ":number": number, ":length": length },
        )?;
        tx.execute(
            UPDATE_MESSAGE,
            named_params! { ":thread": thread, ":number": number, ":body": body },
        )?;
        if was_indexed {
            search::write_indexed(tx, search::ADD, thread, *number)?;
        }
    }
    Ok(())
}

/// Returns the number of a state: `part` is 0 for the state at the run's start, 1 for the state at
/// its end.
pub(super) fn state_number(run: RunNumber, part: i64) -> StateNumber {
    StateNumber(2 * run.0 + part)
}

/// Writes a state if there is a new one.
pub(super) fn write_state(
    tx: &Tx<'_>,
    thread: ThreadNumber,
    number: Option<StateNumber>,
    body: Option<&str>,
) -> StoreResult<()> {
    if let (Some(number), Some(body)) = (number, body) {
        tx.execute(
            INSERT_STATE,
            named_params! { ":thread": thread, ":number": number, ":body": body },
        )?;
    }
    Ok(())
}
