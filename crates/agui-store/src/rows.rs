//! Conversions from rows to records. The tables of SQLite and Postgres have the same columns.
//!
//! A damaged value counts as absent, and is reported. So a damaged row never hides an owner's other
//! threads, and its thread can be deleted.

use std::iter;

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{
    CopiedRun, EndReason, EndState, EventPage, Lease, LostRun, MessageNode, MessageNumber,
    MessageOrigin, QueuedRun, RunRecord, RunStart, RunStatus, StateNumber, StoreError, StoreResult,
    Thread, ThreadKey, ThreadSize,
    damage::{DbRow, readable, required},
    files::{FileSums, ImageSize, StoredFile},
    text::{name_from_text, parse_json},
};
use agui_protocol::{ActivityMessage, JsonObject, Message, MessageId, RunId, ThreadId};

/// The largest number of bytes, messages, events or versions. A larger number is damaged, and
/// adding to it would overflow.
const MAX_COUNT: i64 = 1 << 40;
/// The type of the activity that replaces an unreadable message. Models do not get activities.
const UNREADABLE_MESSAGE: &str = "unreadable_message";

pub(super) fn text<'r>(row: &'r impl DbRow, column: &str) -> StoreResult<&'r str> {
    Ok(required(row, column, row.text(column)?))
}

pub(super) fn optional_text<'r>(row: &'r impl DbRow, column: &str) -> StoreResult<Option<&'r str>> {
    Ok(readable(row, column, row.text(column)?))
}

pub(super) fn number<N: From<i64>>(row: &impl DbRow, column: &str) -> StoreResult<N> {
    Ok(required(row, column, row.number(column)?).into())
}

pub(super) fn optional_number<N: From<i64>>(
    row: &impl DbRow,
    column: &str,
) -> StoreResult<Option<N>> {
    Ok(readable(row, column, row.number(column)?).map(N::from))
}

pub(super) fn count(row: &impl DbRow, column: &str) -> StoreResult<u64> {
    Ok(number_below(row, column, MAX_COUNT + 1, "count")?.cast_unsigned())
}

pub(super) fn file_sums(row: &impl DbRow) -> StoreResult<FileSums> {
    let sum = |column| number_below(row, column, i64::MAX, "sum").map(i64::cast_unsigned);
    Ok(FileSums { files: sum("files")?, bytes: sum("bytes")? })
}

/// Returns a number from 0 to below `end`. Any other number is reported as not `what` it has to be,
/// and becomes 0.
fn number_below(row: &impl DbRow, column: &str, end: i64, what: &str) -> StoreResult<i64> {
    let number = row.number(column)?.and_then(|number| match number {
        Some(number) if !(0..end).contains(&number) => Err(format!("{number} is no {what}")),
        number => Ok(number),
    });
    Ok(required(row, column, number))
}

fn flag(row: &impl DbRow, column: &str) -> StoreResult<bool> {
    Ok(required(row, column, row.flag(column)?))
}

fn name(row: &impl DbRow, column: &str) -> StoreResult<String> {
    Ok(decoded(row, column, text(row, column)?))
}

fn optional_name(row: &impl DbRow, column: &str) -> StoreResult<Option<String>> {
    Ok(optional_text(row, column)?.map(|text| decoded(row, column, text)))
}

fn decoded(row: &impl DbRow, column: &str, text: &str) -> String {
    readable(row, column, name_from_text(text).map(Some)).unwrap_or_else(|| text.to_owned())
}

pub(super) fn list<T: DeserializeOwned>(row: &impl DbRow, column: &str) -> StoreResult<Vec<T>> {
    Ok(json(row, column)?.unwrap_or_default())
}

fn json<T: DeserializeOwned>(row: &impl DbRow, column: &str) -> StoreResult<Option<T>> {
    Ok(optional_text(row, column)?
        .and_then(|text| readable(row, column, parse_json(text).map(Some))))
}

fn required_json<T: DeserializeOwned>(row: &impl DbRow, column: &str) -> StoreResult<Option<T>> {
    let text = text(row, column)?;
    Ok(readable(row, column, parse_json(text).map(Some)))
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

/// Returns a thread without its state and first run.
pub(super) fn thread(row: &impl DbRow) -> StoreResult<Thread> {
    let ThreadSize { messages, bytes } = size(row)?;
    Ok(Thread {
        number: number(row, "number")?,
        key: key(row)?,
        agent: name(row, "agent")?,
        title: optional_name(row, "title")?,
        archived: flag(row, "archived")?,
        metadata: json(row, "metadata")?.unwrap_or_default(),
        head: number(row, "head")?,
        state: None,
        interrupts: list(row, "interrupts")?,
        messages,
        bytes,
        version: count(row, "version")?.cast_signed(),
        run_id: RunId::from(name(row, "run_id")?),
        run: number(row, "run")?,
        first_run: None,
        is_running: optional_text(row, "holder")?.is_some(),
        created_at: number(row, "created_at")?,
        updated_at: number(row, "updated_at")?,
    })
}

pub(super) fn thread_with_state(row: &impl DbRow) -> StoreResult<Thread> {
    Ok(Thread { state: state(row)?, first_run: optional_number(row, "first_run")?, ..thread(row)? })
}

fn state(row: &impl DbRow) -> StoreResult<Option<(StateNumber, Value)>> {
    Ok(optional_number(row, "state")?.zip(json(row, "state_body")?))
}

/// Returns the number of the parent of a message. A branch that does not end at the root would be
/// read in an endless loop.
pub(super) fn parent(row: &impl DbRow) -> StoreResult<MessageNumber> {
    number_below(row, "parent", number(row, "number")?, "earlier message").map(MessageNumber)
}

pub(super) fn node(row: &impl DbRow) -> StoreResult<MessageNode> {
    let (run, delivered) = (optional_number(row, "run")?, flag(row, "delivered")?);
    let message = match required_json(row, "body")? {
        Some(message) => message,
        None => Message::Activity(ActivityMessage::new(
            name(row, "id")?,
            UNREADABLE_MESSAGE,
            JsonObject::new(),
        )),
    };
    Ok(MessageNode {
        number: number(row, "number")?,
        parent: parent(row)?,
        origin: run.map_or(MessageOrigin::Client, |run| MessageOrigin::Run { run, delivered }),
        message,
        feedback: json(row, "feedback")?,
    })
}

/// Returns a file. A damaged number of pixels counts as absent.
pub(super) fn file(row: &impl DbRow) -> StoreResult<StoredFile> {
    let pixels = |column| -> StoreResult<Option<u32>> {
        Ok(optional_number::<i64>(row, column)?.and_then(|pixels| u32::try_from(pixels).ok()))
    };
    Ok(StoredFile {
        number: number(row, "number")?,
        id: text(row, "id")?.to_owned(),
        owner: text(row, "owner")?.into(),
        digest: text(row, "digest")?.to_owned(),
        media_type: text(row, "media_type")?.to_owned(),
        name: optional_text(row, "name")?.map(str::to_owned),
        bytes: count(row, "bytes")?,
        size: pixels("width")?
            .zip(pixels("height")?)
            .map(|(width, height)| ImageSize { width, height }),
        created_at: number(row, "created_at")?,
        object_key: optional_text(row, "object_key")?.map(str::to_owned),
    })
}

/// Returns the id of a message, with the number of its parent.
pub(super) fn sibling(row: &impl DbRow) -> StoreResult<(MessageNumber, MessageId)> {
    Ok((number(row, "parent")?, MessageId::from(name(row, "id")?)))
}

pub(super) fn run(row: &impl DbRow) -> StoreResult<RunRecord> {
    let status = status(text(row, "status")?);
    Ok(RunRecord {
        number: number(row, "number")?,
        thread: number(row, "thread")?,
        id: RunId::from(name(row, "id")?),
        attempt: attempt(row)?,
        asked: optional_name(row, "asked")?,
        continues: flag(row, "continues")?,
        agent: name(row, "agent")?,
        detached: flag(row, "detached")?,
        status,
        delivered: flag(row, "delivered")?,
        started_at: number(row, "started_at")?,
        ended_at: optional_number(row, "ended_at")?,
        events: count(row, if status == RunStatus::Running { "logged" } else { "events" })?,
        usage: list(row, "usage")?,
        failure: json(row, "failure")?,
        end_reason: end_reason(row)?,
        has_unsafe_calls: flag(row, "has_unsafe_calls")?,
        takeovers: count(row, "takeovers")?,
        state: optional_number(row, "state")?,
    })
}

/// Returns the number of an attempt. A damaged one counts as 1.
fn attempt(row: &impl DbRow) -> StoreResult<u32> {
    let attempt = row.number("attempt")?.and_then(|number| {
        let number = number.ok_or("NULL")?;
        let attempt = u32::try_from(number).ok().filter(|attempt| *attempt > 0);
        attempt.map(Some).ok_or_else(|| format!("{number} is no attempt"))
    });
    Ok(readable(row, "attempt", attempt).unwrap_or(1))
}

fn end_reason(row: &impl DbRow) -> StoreResult<Option<EndReason>> {
    let known = |name: &str| EndReason::ALL.into_iter().find(|reason| reason.as_str() == name);
    let reason = row.text("end_reason")?.and_then(|name| {
        let reason = name.map(|name| known(name).ok_or_else(|| format!("{name:?} is no reason")));
        reason.transpose()
    });
    Ok(readable(row, "end_reason", reason))
}

pub(super) fn run_start(row: &impl DbRow) -> StoreResult<RunStart> {
    let (head, request) = (number(row, "head")?, text(row, "request")?.to_owned());
    Ok(RunStart { head, state: json(row, "state_body")?, request })
}

pub(super) fn end_state(row: &impl DbRow) -> StoreResult<EndState> {
    let (run_id, interrupts) = (RunId::from(name(row, "id")?), list(row, "interrupts")?);
    let first_run = optional_number(row, "first_run")?;
    Ok(EndState { run_id, head: number(row, "head")?, first_run, state: state(row)?, interrupts })
}

pub(super) fn lost_run(row: &impl DbRow) -> StoreResult<LostRun> {
    let lease = Lease {
        thread: number(row, "number")?,
        run: number(row, "run")?,
        holder: text(row, "holder")?.into(),
    };
    Ok(LostRun { key: key(row)?, run_id: RunId::from(name(row, "run_id")?), lease })
}

pub(super) fn queued_run(row: &impl DbRow) -> StoreResult<QueuedRun> {
    Ok(QueuedRun {
        number: number(row, "number")?,
        key: key(row)?,
        thread: number(row, "thread")?,
        run_id: RunId::from(name(row, "run_id")?),
        agent: name(row, "agent")?,
        asked: optional_text(row, "asked")?.map(str::to_owned),
        holder: text(row, "holder")?.to_owned(),
        takeovers: count(row, "takeovers")?,
        queued_at: number(row, "queued_at")?,
    })
}

/// Returns the number of a state, and the state.
pub(super) fn numbered_state(row: &impl DbRow) -> StoreResult<(StateNumber, Value)> {
    Ok((number(row, "number")?, required_json(row, "body")?.unwrap_or_default()))
}

/// Returns a run, and the number of its state.
pub(super) fn copied_run(row: &impl DbRow) -> StoreResult<(CopiedRun, Option<StateNumber>)> {
    let (interrupts, answered) = (list(row, "interrupts")?, list(row, "answered")?);
    let run = CopiedRun {
        record: run(row)?,
        head: number(row, "head")?,
        state: None,
        interrupts,
        answered,
    };
    let state = run.record.state;
    Ok((run, state))
}

impl EventPage {
    /// Appends the events of a batch that the page does not have yet, and subtracts their bytes
    /// from `space`. A batch may repeat events of the batch before it. Returns whether there is
    /// space for more events; the first event always fits.
    ///
    /// Fails if the batch contradicts itself or the events before it, and the page is empty.
    pub(super) fn extend(&mut self, row: &impl DbRow, space: &mut usize) -> StoreResult<bool> {
        let (first, last) = (count(row, "first")?, count(row, "last")?);
        let body = optional_text(row, "body")?;
        let next = self.first + self.events.len() as u64;
        let lines = body.map_or(0, |body| body.split('\n').count() as u64);
        let Some(body) = body.filter(|_| (1..=next).contains(&first) && first + lines == last + 1)
        else {
            let problem = format!(
                "the log has no event {next}, but a batch from {first} to {last} with {lines} lines"
            );
            return if self.events.is_empty() {
                Err(StoreError::Failed(problem.into()))
            } else {
                Ok(false)
            };
        };
        // Events are not lost with a damaged list of times.
        let times = text(row, "times")?
            .split(' ')
            .map(|time| time.parse().unwrap_or(0))
            .chain(iter::repeat(0));
        for (number, (event, time)) in (first..).zip(body.split('\n').zip(times)) {
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
