//! Begins a run: finds the thread, checks that it is free and has the expected version, and writes.

use std::sync::Arc;

use rusqlite::{OptionalExtension as _, params};

use super::{finish, reader, writer::Tx};
use crate::store::{
    BeginOutcome, Lease, Millis, NewRun, StoreError, ThreadSize, ThreadVersion,
    text::{BranchColumns, from_json, list_to_json, name_to_text, to_json},
};

const FIND: &str = "
    SELECT number, version, run, holder, messages, bytes FROM agui_threads WHERE owner = ?1 AND id = ?2";

const INSERT_THREAD: &str = "
    INSERT INTO agui_threads (number, owner, id, agent, head, state, interrupts, messages, bytes, version, run, run_id,
        holder, created_at, updated_at, title, archived, indexed)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, 1, ?10, ?11, ?12, ?13, ?13, ?14, 0, 0)";

const UPDATE_THREAD: &str = "
    UPDATE agui_threads SET agent = ?2, head = ?3, state = ?4, interrupts = ?5, messages = ?6, bytes = ?7,
        version = version + 1, run = ?8, run_id = ?9, holder = ?10, updated_at = ?11,
        title = COALESCE(title, ?12)
    WHERE number = ?1";

const FIND_SAME_ID: &str = "SELECT number, answered FROM agui_runs WHERE thread = ?1 AND id = ?2";
const DELETE_RUN: &str = "DELETE FROM agui_runs WHERE number = ?1";
const DELETE_EVENTS: &str = "DELETE FROM agui_events WHERE run = ?1";

const INSERT_RUN: &str = "
    INSERT INTO agui_runs (number, thread, id, agent, detached, status, delivered, head, state, answered, started_at,
        events, has_log)
    VALUES (?1, ?2, ?3, ?4, ?5, 'running', 0, ?6, ?7, ?8, ?9, 0, 0)";

const INSERT_START: &str = "INSERT INTO agui_run_starts (run, head, state, request) VALUES (?1, ?2, ?3, ?4)";
const DELETE_START: &str = "DELETE FROM agui_run_starts WHERE run = ?1";

struct ThreadHeader {
    version: ThreadVersion,
    run: i64,
    holder: Option<Arc<str>>,
    size: ThreadSize,
}

pub(super) struct BeginColumns {
    owner: Arc<str>,
    id: String,
    run_id: String,
    agent: String,
    title: Option<String>,
    detached: bool,
    holder: Arc<str>,
    now: Millis,
    expected: Option<ThreadVersion>,
    branch: BranchColumns,
    state: Option<String>,
    state_number: Option<i64>,
    interrupts: Option<String>,
    answered: Option<String>,
    request: Option<String>,
    max_size: ThreadSize,
}

impl BeginColumns {
    pub(super) fn new(run: &NewRun<'_>) -> Self {
        Self {
            owner: run.key.owner.clone(),
            id: name_to_text(&run.key.id).into_owned(),
            run_id: name_to_text(run.run_id).into_owned(),
            agent: name_to_text(run.agent).into_owned(),
            title: run.title.map(|title| name_to_text(title).into_owned()),
            detached: run.detached,
            holder: run.holder.clone(),
            now: run.now,
            expected: run.expected,
            branch: BranchColumns::new(&run.branch),
            state: run.state.map(to_json),
            state_number: run.state_number,
            interrupts: list_to_json(run.interrupts),
            answered: list_to_json(&run.answered),
            request: run.request.map(str::to_owned),
            max_size: run.max_size,
        }
    }
}

pub(super) fn begin(tx: &mut Tx<'_>, new: &BeginColumns) -> Result<BeginOutcome, StoreError> {
    let found = tx.conn.prepare_cached(FIND)?.query_row(params![new.owner, new.id], |row| {
        let version = ThreadVersion { number: row.get(0)?, version: row.get(1)? };
        let size = ThreadSize { messages: row.get(4)?, bytes: row.get(5)? };
        Ok(ThreadHeader { version, run: row.get(2)?, holder: row.get(3)?, size })
    });
    let found = found.optional()?;
    if let Some(ThreadHeader { version, run, holder: Some(holder), .. }) = found {
        let record =
            reader::run_by_number(tx.conn, run)?.ok_or(StoreError::Failed("a running run is missing".into()))?;
        let lost = (holder != new.holder).then_some(Lease { thread: version.number, run, holder });
        return Ok(BeginOutcome::Busy { run: record, lost });
    }
    if found.as_ref().map(|found| found.version) != new.expected {
        return Ok(BeginOutcome::Changed);
    }
    let before = found.map_or(ThreadSize { messages: 0, bytes: 0 }, |found| found.size);
    let (count, bytes) =
        (new.branch.ids.len() as u64, new.branch.bytes + new.state.as_ref().map_or(0, String::len) as u64);
    let size = ThreadSize { messages: before.messages + count, bytes: before.bytes + bytes };
    let upper_bound = ThreadSize { bytes: size.bytes + new.branch.updated_bytes, ..size };
    if upper_bound.exceeds(new.max_size) {
        return Ok(BeginOutcome::TooLarge(upper_bound));
    }
    let run = tx.numbers.run();
    let (thread, is_new) = new.expected.map_or_else(|| (tx.numbers.thread(), true), |known| (known.number, false));
    let state = if new.state.is_some() { Some(finish::state_number(run, 0)) } else { new.state_number };
    let (first, last) = (before.messages as i64 + 1, size.messages as i64);
    let head = if count == 0 { new.branch.base } else { last };
    if is_new {
        tx.conn.prepare_cached(INSERT_THREAD)?.execute(params![
            thread,
            new.owner,
            new.id,
            new.agent,
            head,
            state,
            new.interrupts,
            size.messages,
            size.bytes,
            run,
            new.run_id,
            new.holder,
            new.now,
            new.title
        ])?;
    } else {
        tx.conn.prepare_cached(UPDATE_THREAD)?.execute(params![
            thread,
            new.agent,
            head,
            state,
            new.interrupts,
            size.messages,
            size.bytes,
            run,
            new.run_id,
            new.holder,
            new.now,
            new.title
        ])?;
    }
    let replaced = if is_new { None } else { delete_same_id(tx, thread, &new.run_id)? };
    let answered = answers_of_both(replaced.as_ref().and_then(|run| run.answered.as_deref()), new.answered.as_deref())?;
    finish::write_branch(tx, thread, first, &new.branch)?;
    finish::write_state(tx, thread, state.filter(|_| new.state.is_some()), new.state.as_deref())?;
    tx.conn.prepare_cached(INSERT_RUN)?.execute(params![
        run,
        thread,
        new.run_id,
        new.agent,
        new.detached,
        head,
        state,
        answered,
        new.now
    ])?;
    if let Some(request) = &new.request {
        tx.conn.prepare_cached(INSERT_START)?.execute(params![run, head, state, request])?;
    }
    Ok(BeginOutcome::Begun {
        lease: Lease { thread, run, holder: new.holder.clone() },
        version: new.expected.map_or(1, |known| known.version + 1),
        last_message: last,
        state_number: state,
        replaced: replaced.is_some(),
    })
}

struct ReplacedRun {
    answered: Option<String>,
}

/// An answer stays given if the run that brought it is replaced.
fn answers_of_both(before: Option<&str>, new: Option<&str>) -> Result<Option<String>, StoreError> {
    let (Some(before), Some(new)) = (before, new) else { return Ok(before.or(new).map(str::to_owned)) };
    let mut ids: Vec<String> = from_json(before)?;
    ids.extend(from_json::<Vec<String>>(new)?);
    Ok(list_to_json(&ids))
}

fn delete_same_id(tx: &mut Tx<'_>, thread: i64, id: &str) -> Result<Option<ReplacedRun>, StoreError> {
    let read = |row: &rusqlite::Row<'_>| Ok((row.get::<_, i64>(0)?, ReplacedRun { answered: row.get(1)? }));
    let same = tx.conn.prepare_cached(FIND_SAME_ID)?.query_row(params![thread, id], read).optional()?;
    if let Some((run, _)) = same {
        tx.conn.prepare_cached(DELETE_RUN)?.execute([run])?;
        tx.conn.prepare_cached(DELETE_EVENTS)?.execute([run])?;
        tx.conn.prepare_cached(DELETE_START)?.execute([run])?;
    }
    Ok(same.map(|(_, replaced)| replaced))
}
