//! Reads a thread with all its stored data except logs, and creates threads with their content.

use rusqlite::{Connection, Row, named_params};

use super::{
    begin::{INSERT_RUN, INSERT_THREAD},
    file_rows::use_files,
    finish::{INSERT_MESSAGE, state_number, write_state},
    reader::{NODES, all, one},
    writer::Tx,
};
use crate::{
    StateNumber, StoreResult, ThreadContent, ThreadKey, columns::ContentColumns, rows,
    text::name_to_text, thread_content::NumberedContent,
};

const THREAD: &str = "SELECT * FROM agui_threads WHERE owner = ? AND id = ?";
const STATES: &str = "SELECT number, body FROM agui_states WHERE thread = ? ORDER BY number";
const RUNS: &str = "SELECT *, 0 AS logged FROM agui_runs WHERE thread = ? AND ended_at IS NOT NULL ORDER BY number";

pub(super) fn read(conn: &Connection, key: &ThreadKey) -> StoreResult<Option<ThreadContent>> {
    let tx = conn.unchecked_transaction()?;
    let thread = |row: &Row<'_>| Ok((rows::thread(row)?, rows::optional_number(row, "state")?));
    let thread = one(&tx, THREAD, (&key.owner, name_to_text(&key.id)), thread)?;
    let Some((thread, state)) = thread else { return Ok(None) };
    let number = thread.number;
    let content = NumberedContent {
        thread,
        state,
        states: all(&tx, STATES, [number], |row| rows::numbered_state(row))?,
        runs: all(&tx, RUNS, [number], |row| rows::copied_run(row))?,
        nodes: all(&tx, NODES, [number], |row| rows::node(row))?,
    };
    Ok(Some(content.with_positions()))
}

/// Returns whether the thread is new.
pub(super) fn insert(tx: &mut Tx<'_>, new: &ContentColumns) -> StoreResult<bool> {
    if tx.conn.prepare_cached(THREAD)?.exists((&new.owner, &new.id))? {
        return Ok(false);
    }
    let thread = tx.numbers.thread();
    let runs: Vec<_> = new.runs.iter().map(|_| tx.numbers.run()).collect();
    let run_at = |position: usize| runs.get(position).copied();
    // All numbers are smaller than those of later runs.
    let first_state = state_number(run_at(0).unwrap_or_default(), 0);
    let state_at =
        |position: Option<usize>| position.map(|at| StateNumber(first_state.0 + at as i64));
    tx.execute(
        INSERT_THREAD,
        named_params! {
            ":thread": thread, ":owner": new.owner, ":id": new.id, ":agent": new.agent, ":title": new.title,
            ":archived": new.archived, ":metadata": new.metadata, ":head": new.head, ":state": state_at(new.state),
            ":interrupts": new.interrupts, ":messages": new.messages.len() as i64, ":bytes": new.bytes,
            ":run": runs.last(), ":run_id": new.runs.last().map(|run| &run.id), ":created_at": new.created_at,
            ":updated_at": new.updated_at,
        },
    )?;
    use_files(tx, thread, &new.files)?;
    for copied in &new.messages {
        let message = &copied.message;
        let run = message.run.and_then(|run| run_at(usize::try_from(run.0).ok()?));
        tx.execute(
            INSERT_MESSAGE,
            named_params! {
                ":thread": thread, ":number": message.number, ":parent": copied.parent, ":id": message.id,
                ":role": message.role, ":run": run, ":body": message.body, ":feedback": copied.feedback,
            },
        )?;
    }
    for (position, body) in new.states.iter().enumerate() {
        write_state(tx, thread, state_at(Some(position)), Some(body))?;
    }
    for run in &new.runs {
        tx.execute(
            INSERT_RUN,
            named_params! {
                ":run": run_at(run.position), ":thread": thread, ":id": run.id, ":attempt": run.attempt,
                ":continues": run.continues, ":agent": run.agent, ":detached": false,
                ":status": run.status, ":delivered": run.delivered, ":head": run.head, ":state": state_at(run.state),
                ":interrupts": run.interrupts, ":answered": run.answered, ":started_at": run.started_at,
                ":ended_at": run.ended_at, ":events": run.events, ":usage": run.usage, ":failure": run.failure,
                ":end_reason": run.end_reason, ":has_unsafe_calls": run.has_unsafe_calls,
            },
        )?;
    }
    Ok(true)
}
