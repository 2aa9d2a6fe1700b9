//! Conversions from rows to records. The tables of SQLite and Postgres have the same columns.

use std::iter;

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{
    CopiedRun, EndState, EventPage, Lease, LostRun, MessageNode, MessageOrigin, RunRecord, RunStart, RunStatus,
    StoreError, StoreResult, Thread, ThreadKey, ThreadSize,
    text::{from_json, list_from_json, name_from_text},
};
use crate::protocol::{MessageId, RunId, ThreadId};

/// A row of a database. Its methods fail if there is no such column, or it has another type.
pub(super) trait DbRow {
    fn text(&self, column: &str) -> StoreResult<Option<&str>>;
    fn number(&self, column: &str) -> StoreResult<Option<i64>>;
    fn flag(&self, column: &str) -> StoreResult<bool>;
}

fn required<T>(value: Option<T>, column: &str) -> StoreResult<T> {
    value.ok_or_else(|| StoreError::Failed(format!("the column {column} is NULL").into()))
}

pub(super) fn text<'r>(row: &'r impl DbRow, column: &str) -> StoreResult<&'r str> {
    required(row.text(column)?, column)
}

pub(super) fn number(row: &impl DbRow, column: &str) -> StoreResult<i64> {
    required(row.number(column)?, column)
}

pub(super) fn count(row: &impl DbRow, column: &str) -> StoreResult<u64> {
    Ok(number(row, column)?.max(0).cast_unsigned())
}

fn name(row: &impl DbRow, column: &str) -> StoreResult<String> {
    name_from_text(text(row, column)?.to_owned())
}

fn optional_name(row: &impl DbRow, column: &str) -> StoreResult<Option<String>> {
    row.text(column)?.map(|text| name_from_text(text.to_owned())).transpose()
}

fn list<T: DeserializeOwned>(row: &impl DbRow, column: &str) -> StoreResult<Vec<T>> {
    list_from_json(row.text(column)?)
}

fn json<T: DeserializeOwned>(row: &impl DbRow, column: &str) -> StoreResult<Option<T>> {
    row.text(column)?.map(from_json).transpose()
}

/// Returns the status with a name. An unknown name is read as failed.
pub(super) fn status(name: &str) -> RunStatus {
    RunStatus::ALL.into_iter().find(|status| status.as_str() == name).unwrap_or(RunStatus::Failed)
}

pub(super) fn size(row: &impl DbRow) -> StoreResult<ThreadSize> {
    Ok(ThreadSize { messages: count(row, "messages")?, bytes: count(row, "bytes")? })
}

fn key(row: &impl DbRow) -> StoreResult<ThreadKey> {
    Ok(ThreadKey { owner: text(row, "owner")?.into(), id: ThreadId::from(name(row, "id")?) })
}

/// Returns a thread without its state.
pub(super) fn thread(row: &impl DbRow) -> StoreResult<Thread> {
    let ThreadSize { messages, bytes } = size(row)?;
    Ok(Thread {
        number: number(row, "number")?,
        key: key(row)?,
        agent: name(row, "agent")?,
        title: optional_name(row, "title")?,
        archived: row.flag("archived")?,
        metadata: json(row, "metadata")?.unwrap_or_default(),
        head: number(row, "head")?,
        state: None,
        interrupts: list(row, "interrupts")?,
        messages,
        bytes,
        version: number(row, "version")?,
        run_id: RunId::from(name(row, "run_id")?),
        run: number(row, "run")?,
        is_running: row.text("holder")?.is_some(),
        created_at: number(row, "created_at")?,
        updated_at: number(row, "updated_at")?,
    })
}

pub(super) fn thread_with_state(row: &impl DbRow) -> StoreResult<Thread> {
    Ok(Thread { state: state(row)?, ..thread(row)? })
}

fn state(row: &impl DbRow) -> StoreResult<Option<(i64, Value)>> {
    Ok(row.number("state")?.zip(json(row, "state_body")?))
}

pub(super) fn node(row: &impl DbRow) -> StoreResult<MessageNode> {
    let (run, delivered) = (row.number("run")?, row.flag("delivered")?);
    Ok(MessageNode {
        number: number(row, "number")?,
        parent: number(row, "parent")?,
        origin: run.map_or(MessageOrigin::Client, |run| MessageOrigin::Run { run, delivered }),
        message: from_json(text(row, "body")?)?,
        feedback: json(row, "feedback")?,
    })
}

/// Returns the id of a message, with the number of its parent.
pub(super) fn sibling(row: &impl DbRow) -> StoreResult<(i64, MessageId)> {
    Ok((number(row, "parent")?, MessageId::from(name(row, "id")?)))
}

pub(super) fn run(row: &impl DbRow) -> StoreResult<RunRecord> {
    let status = status(text(row, "status")?);
    Ok(RunRecord {
        number: number(row, "number")?,
        thread: number(row, "thread")?,
        id: RunId::from(name(row, "id")?),
        agent: name(row, "agent")?,
        detached: row.flag("detached")?,
        status,
        delivered: row.flag("delivered")?,
        started_at: number(row, "started_at")?,
        ended_at: row.number("ended_at")?,
        events: count(row, if status == RunStatus::Running { "logged" } else { "events" })?,
        usage: list(row, "usage")?,
        failure: json(row, "failure")?,
        takeovers: count(row, "takeovers")?,
    })
}

pub(super) fn run_start(row: &impl DbRow) -> StoreResult<RunStart> {
    let (head, request) = (number(row, "head")?, text(row, "request")?.to_owned());
    Ok(RunStart { head, state: json(row, "state_body")?, request })
}

pub(super) fn end_state(row: &impl DbRow) -> StoreResult<EndState> {
    let (run_id, interrupts) = (RunId::from(name(row, "id")?), list(row, "interrupts")?);
    Ok(EndState { run_id, head: number(row, "head")?, state: state(row)?, interrupts })
}

pub(super) fn lost_run(row: &impl DbRow) -> StoreResult<LostRun> {
    let lease = Lease { thread: number(row, "number")?, run: number(row, "run")?, holder: text(row, "holder")?.into() };
    Ok(LostRun { key: key(row)?, run_id: RunId::from(name(row, "run_id")?), lease })
}

/// Returns the number of a state, and the state.
pub(super) fn numbered_state(row: &impl DbRow) -> StoreResult<(i64, Value)> {
    Ok((number(row, "number")?, from_json(text(row, "body")?)?))
}

/// Returns a run, and the number of its state.
pub(super) fn copied_run(row: &impl DbRow) -> StoreResult<(CopiedRun, Option<i64>)> {
    let (interrupts, answered) = (list(row, "interrupts")?, list(row, "answered")?);
    let run = CopiedRun { record: run(row)?, head: number(row, "head")?, state: None, interrupts, answered };
    Ok((run, row.number("state")?))
}

impl EventPage {
    /// Appends the events of a batch that the page does not have yet, and subtracts their bytes from `space`. A batch may
    /// repeat events of the batch before it. Returns whether there is space for more events; the first one always fits.
    pub(super) fn extend(&mut self, row: &impl DbRow, space: &mut usize) -> StoreResult<bool> {
        // Events are not lost with a damaged list of times.
        let times = text(row, "times")?.split(' ').map(|time| time.parse().unwrap_or(0)).chain(iter::repeat(0));
        for (number, (event, time)) in (count(row, "first")?..).zip(text(row, "body")?.split('\n').zip(times)) {
            if number < self.first + self.events.len() as u64 {
                continue;
            }
            if event.len() > *space && !self.events.is_empty() {
                return Ok(false);
            }
            *space = space.saturating_sub(event.len());
            self.events.push(event.to_owned());
            self.times.push(time);
        }
        Ok(true)
    }
}
