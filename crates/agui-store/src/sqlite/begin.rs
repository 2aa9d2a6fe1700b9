//! Begins a run: finds the thread, checks that it is free and has the expected version, and writes.

use std::sync::Arc;

use rusqlite::{Row, named_params};
use serde_json::Value;

use super::{
    events,
    finish::{ends, state_number, write_branch, write_state},
    reader::{RUN_BY_NUMBER, one},
    writer::Tx,
};
use crate::{
    BeginOutcome, Begun, Lease, MessageNumber, RunNumber, RunStatus, StoreError, StoreResult,
    ThreadNumber, ThreadSize, ThreadVersion,
    columns::{BatchColumns, BeginColumns},
    rows,
    text::{list_to_json, parse_json},
};

const FIND: &str = "
    SELECT number, version, run, holder, messages, bytes FROM agui_threads WHERE owner = :owner AND id = :id";

pub(super) const INSERT_THREAD: &str = include_str!("sql/insert_thread.sql");
pub(super) const INSERT_RUN: &str = include_str!("sql/insert_run.sql");
const BEGIN: &str = include_str!("sql/begin.sql");
const INSERT_START: &str = "INSERT INTO agui_run_starts (run, head, state, request) VALUES (:run, :head, :state, :request)";

const FIND_SAME_ID: &str =
    "SELECT number, answered FROM agui_runs WHERE thread = :thread AND id = :id";
const DELETE_RUN: [&str; 2] =
    ["DELETE FROM agui_runs WHERE number = ?", "DELETE FROM agui_run_starts WHERE run = ?"];

struct FoundThread {
    version: ThreadVersion,
    run: RunNumber,
    holder: Option<Arc<str>>,
    size: ThreadSize,
}

impl FoundThread {
    fn read(row: &Row<'_>) -> StoreResult<Self> {
        let version = ThreadVersion {
            number: row.get("number")?,
            version: rows::count(row, "version")?.cast_signed(),
        };
        let holder = rows::optional_text(row, "holder")?.map(Arc::from);
        Ok(Self { version, run: rows::number(row, "run")?, holder, size: rows::size(row)? })
    }
}

pub(super) fn begin(tx: &mut Tx<'_>, new: &BeginColumns) -> StoreResult<BeginOutcome> {
    let found = one(
        tx.conn,
        FIND,
        named_params! { ":owner": new.owner, ":id": new.id },
        FoundThread::read,
    )?;
    if let Some(refusal) = refusal(tx, new, found.as_ref())? {
        return Ok(refusal);
    }
    let run = tx.numbers.run();
    let state =
        if new.branch.state.is_some() { Some(state_number(run, 0)) } else { new.state_number };
    let before = found.as_ref().map_or(ThreadSize::default(), |found| found.size);
    let bytes = before.bytes + new.branch.bytes;
    let last_before = MessageNumber(before.messages.cast_signed());
    let (head, last_message) = ends(&new.branch, last_before);
    let (thread, replaced) = match &found {
        None => {
            let thread = tx.numbers.thread();
            tx.execute(INSERT_THREAD, named_params! {
                ":thread": thread, ":owner": new.owner, ":id": new.id, ":agent": new.agent, ":title": new.title,
                ":archived": false, ":head": head, ":state": state, ":interrupts": new.branch.interrupts,
                ":messages": last_message, ":bytes": bytes, ":run": run, ":run_id": new.run_id, ":holder": new.holder,
                ":created_at": new.now, ":updated_at": new.now,
            })?;
            (thread, None)
        }
        Some(found) => {
            let thread = found.version.number;
            tx.execute(
                BEGIN,
                named_params! {
                    ":thread": thread, ":agent": new.agent, ":head": head, ":state": state,
                    ":interrupts": new.branch.interrupts, ":messages": last_message, ":bytes": bytes, ":run": run,
                    ":run_id": new.run_id, ":holder": new.holder, ":now": new.now, ":title": new.title,
                },
            )?;
            (thread, delete_same_id(tx, thread, &new.run_id)?)
        }
    };
    write_branch(tx, thread, last_before, &new.branch)?;
    write_state(tx, thread, state, new.branch.state.as_deref())?;
    let answered_before = replaced.as_ref().and_then(|replaced| replaced.as_deref());
    tx.execute(INSERT_RUN, named_params! {
        ":run": run, ":thread": thread, ":id": new.run_id, ":agent": new.agent, ":detached": new.detached,
        ":status": RunStatus::Running.as_str(), ":delivered": false, ":head": head,
        ":first_run": new.first_run.unwrap_or(run), ":state": state,
        ":answered": answers_of_both(answered_before, new.answered.as_deref()), ":started_at": new.now, ":events": 0,
    })?;
    if let Some(request) = &new.request {
        let start =
            named_params! { ":run": run, ":head": head, ":state": state, ":request": request };
        tx.execute(INSERT_START, start)?;
    }
    let lease = Lease { thread, run, holder: new.holder.clone() };
    if let Some(started) = &new.started {
        events::insert(tx, &BatchColumns::begin(lease.clone(), started))?;
    }
    Ok(BeginOutcome::Begun(Begun {
        lease,
        version: found.map_or(1, |found| found.version.version + 1),
        last_message,
        state_number: state,
        replaced: replaced.is_some(),
    }))
}

/// Returns the reason why the run does not begin, or `None` if it may begin.
fn refusal(
    tx: &Tx<'_>,
    new: &BeginColumns,
    found: Option<&FoundThread>,
) -> StoreResult<Option<BeginOutcome>> {
    if let Some(FoundThread { version, run, holder: Some(holder), .. }) = found {
        let record = one(tx.conn, RUN_BY_NUMBER, [run], |row| rows::run(row))?;
        let record = record.ok_or(StoreError::Failed("a running run is missing".into()))?;
        let lease = Lease { thread: version.number, run: *run, holder: holder.clone() };
        return Ok(Some(BeginOutcome::Busy {
            run: record,
            lost: (*holder != new.holder).then_some(lease),
        }));
    }
    if found.map(|found| found.version) != new.expected {
        return Ok(Some(BeginOutcome::Changed));
    }
    let size = new.branch.size_after(found.map_or(ThreadSize::default(), |found| found.size));
    Ok(size.exceeds(new.max_size).then_some(BeginOutcome::TooLarge(size)))
}

/// A reply stays if the run that brought it is replaced. A damaged list counts as empty.
fn answers_of_both(before: Option<&str>, new: Option<&str>) -> Option<String> {
    let (Some(before), Some(new)) = (before, new) else { return before.or(new).map(str::to_owned) };
    let replies: [Vec<Value>; 2] = [before, new].map(|list| parse_json(list).unwrap_or_default());
    list_to_json(&replies.concat())
}

/// Deletes an ended run. Returns the replies that it brought, or `None` if there is no such run.
fn delete_same_id(
    tx: &Tx<'_>,
    thread: ThreadNumber,
    id: &str,
) -> StoreResult<Option<Option<String>>> {
    let params = named_params! { ":thread": thread, ":id": id };
    let same: Option<(RunNumber, Option<String>)> =
        one(tx.conn, FIND_SAME_ID, params, |row| Ok(row.try_into()?))?;
    let Some((run, answered)) = same else { return Ok(None) };
    for sql in DELETE_RUN {
        tx.execute(sql, [run])?;
    }
    events::delete_rows(tx, &events::rows_of(tx.conn, &[run])?)?;
    events::delete_ends(tx, &[run])?;
    Ok(Some(answered))
}
