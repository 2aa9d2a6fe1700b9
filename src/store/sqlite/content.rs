//! Reads a thread with everything that is stored of it except logs, and creates threads with their content.

use rusqlite::{Connection, OptionalExtension as _, params};

use super::{
    finish::state_number,
    reader::{all, one},
    writer::Tx,
};
use crate::store::{
    StoreError, ThreadContent, ThreadKey, content_columns::ContentColumns, content_rows::ContentRows,
    text::name_to_text,
};

const THREAD: &str = "SELECT * FROM agui_threads WHERE owner = ?1 AND id = ?2";
const MESSAGES: &str = "SELECT parent, run, body, feedback FROM agui_messages WHERE thread = ?1 ORDER BY number";
const STATES: &str = "SELECT number, body FROM agui_states WHERE thread = ?1 ORDER BY number";
const RUNS: &str = "SELECT *, 0 AS logged FROM agui_runs WHERE thread = ?1 AND ended_at IS NOT NULL ORDER BY number";

const EXISTS: &str = "SELECT 1 FROM agui_threads WHERE owner = ?1 AND id = ?2";
const INSERT_THREAD: &str = "
    INSERT INTO agui_threads (number, owner, id, agent, title, archived, metadata, head, state, interrupts, indexed,
        messages, bytes, version, run, run_id, created_at, updated_at)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, 0, ?11, ?12, 1, ?13, ?14, ?15, ?16)";
const INSERT_MESSAGE: &str = "
    INSERT INTO agui_messages (thread, number, parent, id, role, run, body, feedback)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
const INSERT_STATE: &str = "INSERT INTO agui_states (thread, number, body) VALUES (?1, ?2, ?3)";
const INSERT_RUN: &str = "
    INSERT INTO agui_runs (number, thread, id, agent, detached, status, delivered, head, state, interrupts, answered,
        started_at, ended_at, events, usage, failure, has_log)
    VALUES (?1, ?2, ?3, ?4, 0, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, 0)";

pub(super) fn read(conn: &Connection, key: &ThreadKey) -> Result<Option<ThreadContent>, StoreError> {
    let tx = conn.unchecked_transaction()?;
    let thread = one(&tx, THREAD, params![key.owner, name_to_text(&key.id)], |row| ContentRows::new(row))?;
    let Some((mut content, number)) = thread else { return Ok(None) };
    all(&tx, STATES, [number], |row| content.state(row))?;
    all(&tx, RUNS, [number], |row| content.run(row))?;
    all(&tx, MESSAGES, [number], |row| content.message(row))?;
    Ok(Some(content.finish()))
}

/// Returns whether the thread is new.
pub(super) fn insert(tx: &mut Tx<'_>, new: &ContentColumns) -> Result<bool, StoreError> {
    if tx.conn.prepare_cached(EXISTS)?.query_row(params![new.owner, new.id], |_| Ok(())).optional()?.is_some() {
        return Ok(false);
    }
    let thread = tx.numbers.thread();
    let runs: Vec<_> = new.runs.iter().map(|_| tx.numbers.run()).collect();
    let (first, last) = (runs.first().copied().unwrap_or_default(), runs.last().copied().unwrap_or_default());
    // All numbers are smaller than those of later runs.
    let state_at = |position: Option<i64>| position.map(|position| state_number(first, 0) + position);
    tx.conn.prepare_cached(INSERT_THREAD)?.execute(params![
        thread,
        new.owner,
        new.id,
        new.agent,
        new.title,
        new.archived,
        new.metadata,
        new.head,
        state_at(new.state),
        new.interrupts,
        new.messages.len() as i64,
        new.bytes,
        last,
        new.runs.last().map(|run| &run.id),
        new.created_at,
        new.updated_at
    ])?;
    for (message, number) in new.messages.iter().zip(1_i64..) {
        let run = message.run.and_then(|run| runs.get(run));
        tx.conn.prepare_cached(INSERT_MESSAGE)?.execute(params![
            thread,
            number,
            message.parent,
            message.id,
            message.role,
            run,
            message.body,
            message.feedback
        ])?;
    }
    for (body, position) in new.states.iter().zip(0..) {
        tx.conn.prepare_cached(INSERT_STATE)?.execute(params![thread, state_at(Some(position)), body])?;
    }
    for (run, number) in new.runs.iter().zip(&runs) {
        tx.conn.prepare_cached(INSERT_RUN)?.execute(params![
            number,
            thread,
            run.id,
            run.agent,
            run.status,
            run.delivered,
            run.head,
            state_at(run.state),
            run.interrupts,
            run.answered,
            run.started_at,
            run.ended_at,
            run.events,
            run.usage,
            run.failure
        ])?;
    }
    Ok(true)
}
