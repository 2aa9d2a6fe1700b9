//! Conversions from rows to records. The tables of SQLite and Postgres have the same columns.

use std::collections::BTreeMap;

use serde::de::{DeserializeOwned, IgnoredAny};

use super::{
    EndState, Feedback, Lease, LostRun, MessageNode, MessageOrigin, RunRecord, RunStatus, StoreError, Thread,
    ThreadKey, ThreadSummary,
    text::{from_json, list_from_json, name_from_text},
};
use crate::protocol::{MessageId, RunId, ThreadId};

/// A row of a database. Its methods fail if there is no such column, or it has another type.
pub(super) trait DbRow {
    fn text(&self, column: &str) -> Result<Option<&str>, StoreError>;
    fn number(&self, column: &str) -> Result<Option<i64>, StoreError>;
    fn flag(&self, column: &str) -> Result<bool, StoreError>;
}

fn required<T>(value: Option<T>, column: &str) -> Result<T, StoreError> {
    value.ok_or_else(|| StoreError::Failed(format!("the column {column} is NULL").into()))
}

pub(super) fn text<'r>(row: &'r impl DbRow, column: &str) -> Result<&'r str, StoreError> {
    required(row.text(column)?, column)
}

pub(super) fn number(row: &impl DbRow, column: &str) -> Result<i64, StoreError> {
    required(row.number(column)?, column)
}

fn count(row: &impl DbRow, column: &str) -> Result<u64, StoreError> {
    Ok(number(row, column)?.max(0).cast_unsigned())
}

pub(super) fn name(row: &impl DbRow, column: &str) -> Result<String, StoreError> {
    name_from_text(text(row, column)?.to_owned())
}

pub(super) fn optional_name(row: &impl DbRow, column: &str) -> Result<Option<String>, StoreError> {
    row.text(column)?.map(|text| name_from_text(text.to_owned())).transpose()
}

pub(super) fn list<T: DeserializeOwned>(row: &impl DbRow, column: &str) -> Result<Vec<T>, StoreError> {
    list_from_json(row.text(column)?)
}

pub(super) fn json<T: DeserializeOwned>(row: &impl DbRow, column: &str) -> Result<Option<T>, StoreError> {
    row.text(column)?.map(from_json).transpose()
}

/// Returns the status with a name. An unknown name is read as failed.
pub(super) fn status(name: &str) -> RunStatus {
    RunStatus::ALL.into_iter().find(|status| status.as_str() == name).unwrap_or(RunStatus::Failed)
}

pub(super) fn thread(row: &impl DbRow, key: &ThreadKey) -> Result<Thread, StoreError> {
    Ok(Thread {
        number: number(row, "number")?,
        key: key.clone(),
        agent: name(row, "agent")?,
        title: optional_name(row, "title")?,
        archived: row.flag("archived")?,
        metadata: json(row, "metadata")?.unwrap_or_default(),
        head: number(row, "head")?,
        state: row.number("state")?.zip(json(row, "state_body")?),
        interrupts: list(row, "interrupts")?,
        messages: count(row, "messages")?,
        bytes: count(row, "bytes")?,
        version: number(row, "version")?,
        run_id: RunId::from(name(row, "run_id")?),
        run: number(row, "run")?,
        is_running: row.text("holder")?.is_some(),
        created_at: number(row, "created_at")?,
        updated_at: number(row, "updated_at")?,
    })
}

pub(super) fn thread_id(row: &impl DbRow) -> Result<ThreadId, StoreError> {
    Ok(ThreadId::from(name(row, "id")?))
}

pub(super) fn summary(row: &impl DbRow) -> Result<ThreadSummary, StoreError> {
    let interrupts: Vec<IgnoredAny> = list(row, "interrupts")?;
    let is_running = row.text("holder")?.is_some();
    Ok(ThreadSummary {
        id: ThreadId::from(name(row, "id")?),
        agent: name(row, "agent")?,
        title: optional_name(row, "title")?,
        archived: row.flag("archived")?,
        metadata: json(row, "metadata")?.unwrap_or_default(),
        run: number(row, "run")?,
        active_run: is_running.then(|| name(row, "run_id")).transpose()?.map(RunId::from),
        open_interrupts: interrupts.len() as u64,
        created_at: number(row, "created_at")?,
        updated_at: number(row, "updated_at")?,
    })
}

pub(super) fn node(row: &impl DbRow) -> Result<MessageNode, StoreError> {
    let delivered = row.flag("delivered")?;
    Ok(MessageNode {
        number: number(row, "number")?,
        parent: number(row, "parent")?,
        origin: row.number("run")?.map_or(MessageOrigin::Client, |run| MessageOrigin::Run { run, delivered }),
        message: from_json(text(row, "body")?)?,
    })
}

/// Returns a message, and adds the feedback on it to `feedback`.
pub(super) fn node_with_feedback(
    row: &impl DbRow,
    feedback: &mut BTreeMap<i64, Feedback>,
) -> Result<MessageNode, StoreError> {
    let node = node(row)?;
    if let Some(given) = json(row, "feedback")? {
        feedback.insert(node.number, given);
    }
    Ok(node)
}

/// Returns the id of a message, with the number of its parent.
pub(super) fn sibling(row: &impl DbRow) -> Result<(i64, MessageId), StoreError> {
    Ok((number(row, "parent")?, MessageId::from(name(row, "id")?)))
}

pub(super) fn run(row: &impl DbRow) -> Result<RunRecord, StoreError> {
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
    })
}

pub(super) fn end_state(row: &impl DbRow) -> Result<EndState, StoreError> {
    let state = row.number("state")?.zip(json(row, "state_body")?);
    let run_id = RunId::from(name(row, "id")?);
    Ok(EndState { run_id, head: number(row, "head")?, state, interrupts: list(row, "interrupts")? })
}

pub(super) fn lost_run(row: &impl DbRow) -> Result<LostRun, StoreError> {
    let key = ThreadKey { owner: text(row, "owner")?.into(), id: ThreadId::from(name(row, "id")?) };
    let lease = Lease { thread: number(row, "number")?, run: number(row, "run")?, holder: text(row, "holder")?.into() };
    Ok(LostRun { key, run_id: RunId::from(name(row, "run_id")?), lease })
}
