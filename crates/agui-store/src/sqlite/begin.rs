//! Begins a run: finds the thread, checks that it is free and has the expected version, and writes.

use std::sync::Arc;

use rusqlite::{Row, named_params};

use super::{
    events,
    finish::{ends, state_number, write_branch, write_state},
    reader::{RUN_BY_NUMBER, one},
    writer::Tx,
};
use crate::{
    BeginOutcome, Begun, Lease, MessageNumber, RunNumber, RunStatus, StoreError, StoreResult,
    ThreadSize, ThreadVersion,
    columns::{BatchColumns, BeginColumns},
    rows,
};

const FIND: &str = "
    SELECT number, version, run, holder, messages, bytes FROM agui_threads WHERE owner = :owner AND id = :id";

pub(super) const INSERT_THREAD: &str = include_str!("sql/insert_thread.sql");
pub(super) const INSERT_RUN: &str = include_str!("sql/insert_run.sql");
const BEGIN: &str = include_str!("sql/begin.sql");
const KNOWN_RUN: &str = include_str!("sql/known_run.sql");
const INSERT_START: &str = "
    INSERT INTO agui_run_starts (run, head, state, request)
    SELECT number, head, state, :request FROM agui_runs WHERE number = :run ON CONFLICT DO NOTHING";
const SET_DETACHED: &str = "UPDATE agui_runs SET detached = 1 WHERE number = ?";
const IS_BEHIND: &str = "
    SELECT EXISTS (SELECT 1 FROM agui_queued_runs AS other
        WHERE other.thread = q.thread AND other.holder <> :holder AND other.number < COALESCE((
            SELECT MIN(own.number) FROM agui_queued_runs AS own
            WHERE own.thread = q.thread AND own.holder = :holder), q.number))
    FROM agui_queued_runs AS q JOIN agui_threads AS t ON t.number = q.thread WHERE q.number = :number AND t.owner <> ''";
const DEQUEUE: &str = "DELETE FROM agui_queued_runs WHERE number = ?";

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
    if let Some(queued) = new.queued {
        tx.execute(DEQUEUE, [queued])?;
    }
    let run = tx.numbers.run();
    let state =
        if new.branch.state.is_some() { Some(state_number(run, 0)) } else { new.state_number };
    let before = found.as_ref().map_or(ThreadSize::default(), |found| found.size);
    let bytes = before.bytes + new.branch.bytes;
    let last_before = MessageNumber(before.messages.cast_signed());
    let (head, last_message) = ends(&new.branch, last_before);
    let thread = match &found {
        None => {
            let thread = tx.numbers.thread();
            tx.execute(INSERT_THREAD, named_params! {
                ":thread": thread, ":owner": new.owner, ":id": new.id, ":agent": new.agent, ":title": new.title,
                ":archived": false, ":head": head, ":state": state, ":interrupts": new.branch.interrupts,
                ":messages": last_message, ":bytes": bytes, ":run": run, ":run_id": new.run_id, ":holder": new.holder,
                ":created_at": new.now, ":updated_at": new.now,
            })?;
            thread
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
            thread
        }
    };
    write_branch(tx, thread, last_before, &new.branch)?;
    write_state(tx, thread, state, new.branch.state.as_deref())?;
    tx.execute(INSERT_RUN, named_params! {
        ":run": run, ":thread": thread, ":id": new.run_id, ":asked": new.asked, ":continues": new.continues,
        ":agent": new.agent, ":detached": new.detached, ":status": RunStatus::Running.as_str(), ":delivered": false,
        ":head": head, ":first_run": new.first_run.unwrap_or(run), ":state": state, ":answered": new.answered,
        ":started_at": new.now, ":events": 0,
    })?;
    if let Some(request) = &new.request {
        tx.execute(INSERT_START, named_params! { ":run": run, ":request": request })?;
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
    }))
}

/// Makes a running run a detached one. Returns whether its lease is held.
pub(super) fn promote(
    tx: &Tx<'_>,
    request: Option<&str>,
    first: &BatchColumns,
) -> StoreResult<bool> {
    let run = first.lease.run;
    if events::append(tx, std::slice::from_ref(first))? != [true] {
        return Ok(false);
    }
    tx.execute(SET_DETACHED, [run])?;
    if let Some(request) = request {
        tx.execute(INSERT_START, named_params! { ":run": run, ":request": request })?;
    }
    Ok(true)
}

/// Returns the reason why the run does not begin, or `None` if it may begin.
fn refusal(
    tx: &Tx<'_>,
    new: &BeginColumns,
    found: Option<&FoundThread>,
) -> StoreResult<Option<BeginOutcome>> {
    let of_queue = of_queue(tx, new)?;
    if matches!(of_queue, Some(BeginOutcome::Dequeued)) {
        return Ok(of_queue);
    }
    if let Some(FoundThread { version, run, holder: Some(holder), .. }) = found {
        let record = one(tx.conn, RUN_BY_NUMBER, [run], |row| rows::run(row))?;
        let record = record.ok_or(StoreError::Failed("a running run is missing".into()))?;
        let lease = Lease { thread: version.number, run: *run, holder: holder.clone() };
        return Ok(Some(BeginOutcome::Busy {
            run: record,
            lost: (*holder != new.holder).then_some(lease),
        }));
    }
    if of_queue.is_some() {
        return Ok(of_queue);
    }
    if found.map(|found| found.version) != new.expected {
        return Ok(Some(BeginOutcome::Changed));
    }
    if let Some(asked) = &new.asked
        && let Some(FoundThread { version, .. }) = found
    {
        let params = named_params! {
            ":thread": version.number, ":id": new.run_id, ":asked": asked, ":known": new.known,
        };
        if let Some(known) = one(tx.conn, KNOWN_RUN, params, |row| rows::run(row))? {
            return Ok(Some(BeginOutcome::Known(Box::new(known))));
        }
    }
    let size = new.branch.size_after(found.map_or(ThreadSize::default(), |found| found.size));
    Ok(size.exceeds(new.max_size).then_some(BeginOutcome::TooLarge(size)))
}

/// Returns the reason why a queued run does not begin on its thread, which no run uses, or `None` if it may begin.
fn of_queue(tx: &Tx<'_>, new: &BeginColumns) -> StoreResult<Option<BeginOutcome>> {
    let Some(number) = new.queued else { return Ok(None) };
    let params = named_params! { ":number": number, ":holder": new.holder };
    let is_behind = one(tx.conn, IS_BEHIND, params, |row| Ok(row.get::<_, bool>(0)?))?;
    Ok(match is_behind {
        None => Some(BeginOutcome::Dequeued),
        Some(true) => Some(BeginOutcome::Behind),
        Some(false) => None,
    })
}
