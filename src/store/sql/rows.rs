//! What the columns hold, as records and back.

use serde::de::DeserializeOwned;
use sqlx::{Row as _, any::AnyRow};

use super::{
    error::Fault,
    key::{from_text, identifier},
};
use crate::{
    protocol::{RunId, ThreadId},
    store::{RunEnd, RunFailure, RunRecord, RunStatus, ThreadContent},
};

/// The columns of [`runs_of_thread`] that [`run`] reads. A running run has as many events as its log.
macro_rules! run_columns {
    () => {
        "r.run_number, r.run_key, r.run_id, r.agent AS run_agent, r.detached, r.status, r.started_at, r.ended_at, \
         r.usage, r.failure, CASE WHEN r.ended_at IS NOT NULL THEN r.events ELSE (SELECT COALESCE(MAX(e.last_event), 0) \
         FROM agui_log AS e WHERE e.run_number = r.run_number) END AS events"
    };
}
pub(super) use run_columns;

/// The runs of the thread with the key `$1`: the recorded ones, and the running one if its thread's row alone
/// names it. A view would be read as a whole.
macro_rules! runs_of_thread {
    ($name:literal) => {
        concat!(
            "(SELECT run_number, run_key, run_id, agent, detached, status, started_at, ended_at, events, usage, \
                failure FROM agui_runs \
             WHERE thread_number = (SELECT thread_number FROM agui_threads WHERE thread_key = $1) \
             UNION ALL SELECT run_number, run_key, run_id, agent, 0, 'running', run_started_at, NULL, 0, NULL, NULL \
             FROM agui_threads WHERE thread_key = $1 AND run_recorded = 0) AS ",
            $name
        )
    };
}
pub(super) use runs_of_thread;

/// A run, of a row with [`run_columns`].
pub(super) fn run(row: &AnyRow, thread_id: &ThreadId) -> Result<RunRecord, Fault> {
    let status: &str = row.try_get("status")?;
    let status = RunStatus::ALL.into_iter().find(|known| known.as_str() == status);
    let failure: Option<&str> = row.try_get("failure")?;
    let failure: Option<(Option<String>, String)> = failure.map(parse).transpose()?;
    let usage: Option<&str> = row.try_get("usage")?;
    Ok(RunRecord {
        thread_id: thread_id.clone(),
        run_id: run_id(row)?,
        number: row.try_get("run_number")?,
        agent: from_text(row.try_get("run_agent")?)?,
        detached: row.try_get::<i64, _>("detached")? != 0,
        status: status.ok_or_else(|| Fault::unreadable("a run has a status that this version does not know"))?,
        started_at: row.try_get("started_at")?,
        ended_at: row.try_get("ended_at")?,
        events: count(row, "events")?,
        usage: usage.map(parse).transpose()?.unwrap_or_default(),
        failure: failure.map(|(code, message)| RunFailure { code, message }),
    })
}

/// The run of a row, or the active run of a thread's row.
pub(super) fn run_id(row: &AnyRow) -> Result<RunId, Fault> {
    identifier(row.try_get("run_key")?, row.try_get("run_id")?).map(RunId::from)
}

pub(super) fn thread_id(row: &AnyRow) -> Result<ThreadId, Fault> {
    identifier(row.try_get("thread_key")?, row.try_get("thread_id")?).map(ThreadId::from)
}

/// A number that is never negative.
pub(super) fn count(row: &AnyRow, column: &str) -> Result<u64, Fault> {
    u64::try_from(row.try_get::<i64, _>(column)?).map_err(Fault::unreadable)
}

/// A number as a column takes it. What is larger than any number of events or bytes stays so.
pub(super) fn number(count: impl TryInto<i64>) -> i64 {
    count.try_into().unwrap_or(i64::MAX)
}

/// A thread's content, of a row of `agui_contents`, perhaps of none.
pub(super) fn content(row: &AnyRow) -> Result<ThreadContent, Fault> {
    let Some(messages) = row.try_get::<Option<&str>, _>("messages")? else { return Ok(ThreadContent::default()) };
    let state: Option<&str> = row.try_get("state")?;
    let interrupts: &str = row.try_get("interrupts")?;
    Ok(ThreadContent {
        messages: parse(messages)?,
        state: state.map(parse).transpose()?,
        interrupts: parse(interrupts)?,
    })
}

/// A thread's content as its columns hold it.
#[derive(Debug)]
pub(super) struct ContentColumns {
    pub(super) messages: String,
    pub(super) state: Option<String>,
    /// `None` is none: most runs have none.
    pub(super) interrupts: Option<String>,
    pub(super) open_interrupts: i64,
}

impl ContentColumns {
    pub(super) fn new(content: &ThreadContent) -> Result<Self, Fault> {
        Ok(Self {
            messages: long_json(&content.messages)?,
            state: content.state.as_ref().map(json).transpose()?,
            interrupts: (!content.interrupts.is_empty()).then(|| json(&content.interrupts)).transpose()?,
            open_interrupts: number(content.interrupts.len()),
        })
    }

    pub(super) fn bytes(&self) -> usize {
        self.messages.len()
            + self.state.as_ref().map_or(0, String::len)
            + self.interrupts.as_ref().map_or(0, String::len)
    }
}

/// How a run ended, as its columns hold it.
#[derive(Debug)]
pub(super) struct EndColumns {
    pub(super) status: &'static str,
    pub(super) at: i64,
    pub(super) events: i64,
    pub(super) usage: Option<String>,
    pub(super) failure: Option<String>,
}

impl EndColumns {
    pub(super) fn new(end: &RunEnd) -> Result<Self, Fault> {
        let failure = end.failure.as_ref().map(|failure| json(&(&failure.code, &failure.message)));
        Ok(Self {
            status: end.status.as_str(),
            at: end.at,
            events: number(end.events),
            usage: (!end.usage.is_empty()).then(|| json(&end.usage)).transpose()?,
            failure: failure.transpose()?,
        })
    }
}

/// With room for what most conversations take: a text that grows is copied again and again.
fn long_json(value: &impl serde::Serialize) -> Result<String, Fault> {
    let mut json = Vec::with_capacity(4096);
    serde_json::to_writer(&mut json, value).map_err(Fault::unreadable)?;
    String::from_utf8(json).map_err(Fault::unreadable)
}

fn json(value: &impl serde::Serialize) -> Result<String, Fault> {
    serde_json::to_string(value).map_err(Fault::unreadable)
}

/// A document may be nested a little deeper than one that a client may send, for it has grown since, and was
/// bounded then. The parser's own bound would make such a thread unreadable.
fn parse<T: DeserializeOwned>(text: &str) -> Result<T, Fault> {
    let mut parser = serde_json::Deserializer::from_str(text);
    parser.disable_recursion_limit();
    T::deserialize(&mut parser).map_err(Fault::unreadable)
}
