//! Writes a thread's content, and ends a run.

use std::mem;

use sqlx::AnyConnection;

use super::{
    Dialect, Sql,
    error::Fault,
    group::{Done, Task},
    key,
    log::Batch,
    many::{MOST, Many},
    rows::{ContentColumns, EndColumns},
};
use crate::store::{Append, Lease, RunEnd, StoreError, ThreadContent};

static SAVE: Many = Many::new(
    "WITH v (thread_number, token, open_interrupts) AS (VALUES ",
    "(#, #, #)",
    ") UPDATE agui_threads SET version = version + 1, open_interrupts = v.open_interrupts FROM v \
     WHERE agui_threads.thread_number = v.thread_number AND agui_threads.token = v.token AND holder IS NOT NULL",
);

static RELEASE: Many = Many::new(
    "WITH v (thread_number, token, at, open_interrupts) AS (VALUES ",
    "(#, #, #, #)",
    ") UPDATE agui_threads SET holder = NULL, lease_until = NULL, cancel = 0, run_recorded = 1, \
        updated_at = v.at, version = version + CASE WHEN v.open_interrupts IS NULL THEN 0 ELSE 1 END, \
        open_interrupts = COALESCE(v.open_interrupts, agui_threads.open_interrupts) \
     FROM v WHERE agui_threads.thread_number = v.thread_number AND agui_threads.token = v.token AND holder IS NOT NULL",
);

static CONTENT: Many = Many::new(
    "WITH v (thread_number, messages, state, interrupts) AS (VALUES ",
    "(#, ?, ?, ?)",
    ") INSERT INTO agui_contents (thread_number, messages, state, interrupts) \
     SELECT v.thread_number, v.messages, v.state, COALESCE(v.interrupts, '[]') FROM v WHERE v.thread_number IS NOT NULL \
     ON CONFLICT (thread_number) DO UPDATE SET \
        messages = excluded.messages, state = excluded.state, interrupts = excluded.interrupts",
);

/// Records the run, or how it ended if it is recorded already. Its thread's row, which has given the lease back, has
/// the rest.
static END: Many = Many::new(
    "WITH v (thread_number, status, events, usage, failure) AS (VALUES ",
    "(#, ?, #, ?, ?)",
    ") INSERT INTO agui_runs AS r (run_number, thread_number, run_key, run_id, agent, detached, status, \
        started_at, ended_at, end_token, events, usage, failure, has_log) \
     SELECT t.run_number, t.thread_number, t.run_key, t.run_id, t.agent, 0, v.status, t.run_started_at, \
        t.updated_at, t.token, v.events, v.usage, v.failure, \
        CASE WHEN EXISTS (SELECT 1 FROM agui_log AS l WHERE l.run_number = t.run_number) THEN 1 ELSE 0 END \
     FROM v JOIN agui_threads AS t ON t.thread_number = v.thread_number WHERE v.thread_number IS NOT NULL \
     ON CONFLICT (run_number) DO UPDATE SET status = excluded.status, ended_at = excluded.ended_at, \
        end_token = excluded.end_token, events = excluded.events, usage = excluded.usage, \
        failure = excluded.failure, has_log = excluded.has_log",
);

/// The thread's row is locked, and its lease was there: nothing more to compare.
static LAST: Many = Many::new(
    "WITH v (run_number, first_event, last_event, bytes, body) AS (VALUES ",
    "(#, #, #, #, ?)",
    ") INSERT INTO agui_log (run_number, first_event, last_event, bytes, body) \
     SELECT v.run_number, v.first_event, v.last_event, v.bytes, v.body FROM v \
     WHERE v.run_number IS NOT NULL AND NOT EXISTS (SELECT 1 FROM agui_log AS l \
        WHERE l.run_number = v.run_number AND l.last_event >= v.last_event) \
     ON CONFLICT DO NOTHING",
);

const ENDED: &str = "SELECT 1 AS ended FROM agui_runs WHERE run_number = $1 AND end_token = $2";

/// What a run writes about its thread, and about itself when it ends.
#[derive(Debug)]
pub(super) struct Write {
    /// The thread's key.
    pub(super) thread: String,
    /// The thread's number.
    number: i64,
    token: i64,
    run: i64,
    content: Option<ContentColumns>,
    pub(super) end: Option<EndColumns>,
    /// The last events, with the end.
    last: Option<Batch>,
}

impl Write {
    fn new(lease: &Lease, content: Option<&ThreadContent>) -> Result<Self, Fault> {
        Ok(Self {
            thread: key::key(&lease.thread_id).into_owned(),
            number: lease.thread_number,
            token: lease.token,
            run: lease.run_number,
            content: content.map(ContentColumns::new).transpose()?,
            end: None,
            last: None,
        })
    }

    pub(super) fn bytes(&self) -> usize {
        self.content.as_ref().map_or(0, ContentColumns::bytes) + self.last.as_ref().map_or(0, |last| last.body.len())
    }

    fn open_interrupts(&self) -> Option<i64> {
        self.content.as_ref().map(|content| content.open_interrupts)
    }
}

impl Sql {
    pub(super) async fn save_content(&self, lease: &Lease, content: &ThreadContent) -> Result<(), StoreError> {
        self.together(|| Ok(Task::Write(Write::new(lease, Some(content))?))).await.map(|_: Done| ())
    }

    pub(super) async fn finish_run(
        &self,
        lease: &Lease,
        content: Option<&ThreadContent>,
        last: Option<&Append>,
        end: &RunEnd,
    ) -> Result<(), StoreError> {
        let make = || {
            let last = last.map(Batch::new).transpose()?.filter(|last| !last.is_empty());
            Ok(Task::Write(Write { end: Some(EndColumns::new(end)?), last, ..Write::new(lease, content)? }))
        };
        self.together(make).await.map(|_: Done| ())
    }
}

/// Writes all, or finds that one of several cannot be written.
pub(super) async fn write(conn: &mut AnyConnection, dialect: Dialect, mut writes: Vec<Write>) -> Result<(), Fault> {
    let (ends, saves): (Vec<&Write>, Vec<&Write>) = writes.iter().partition(|write| write.end.is_some());
    if !release(conn, dialect, &ends, ends.len() == 1 && saves.is_empty()).await? {
        // It has ended before, and there is nothing else to do.
        return Ok(());
    }
    save(conn, dialect, &saves).await?;
    let mut lasts: Vec<_> = writes.iter_mut().filter_map(|write| write.last.as_mut()).collect();
    for these in lasts.chunks_mut(MOST) {
        let mut insert = LAST.query(dialect, these.len());
        for last in these.iter_mut() {
            let body = mem::take(&mut last.body);
            insert = insert.bind(last.run).bind(last.first).bind(last.last).bind(last.bytes).bind(body);
        }
        LAST.filled(insert, these.len()).execute(&mut *conn).await?;
    }
    let records: Vec<_> = writes.iter().filter_map(|write| Some((write, write.end.as_ref()?))).collect();
    for these in records.chunks(MOST) {
        let mut insert = END.query(dialect, these.len());
        for (write, end) in these {
            insert = insert.bind(write.number).bind(end.status).bind(end.events);
            insert = insert.bind(end.usage.as_ref()).bind(end.failure.as_ref());
        }
        END.filled(insert, these.len()).execute(&mut *conn).await?;
    }
    let mut contents = writes.into_iter().filter_map(|write| Some((write.number, write.content?)));
    loop {
        let these: Vec<_> = contents.by_ref().take(MOST).collect();
        if these.is_empty() {
            return Ok(());
        }
        let (count, mut replace) = (these.len(), CONTENT.query(dialect, these.len()));
        for (thread, content) in these {
            replace = replace.bind(thread).bind(content.messages).bind(content.state).bind(content.interrupts);
        }
        CONTENT.filled(replace, count).execute(&mut *conn).await?;
    }
}

/// Gives the leases back. `false` when the run, if it is alone, had been ended under its lease before.
async fn release(conn: &mut AnyConnection, dialect: Dialect, ends: &[&Write], alone: bool) -> Result<bool, Fault> {
    for these in ends.chunks(MOST) {
        let mut update = RELEASE.query(dialect, these.len());
        for write in these {
            let end = write.end.as_ref().map(|end| end.at);
            update = update.bind(write.number).bind(write.token).bind(end).bind(write.open_interrupts());
        }
        if RELEASE.filled(update, these.len()).execute(&mut *conn).await?.rows_affected() != these.len() as u64 {
            let Some(only) = these.first().filter(|_| alone) else { return Err(Fault::Lost) };
            let ended = sqlx::query(ENDED).bind(only.run).bind(only.token).fetch_optional(&mut *conn).await?;
            return ended.map(|_| false).ok_or(Fault::Lost);
        }
    }
    Ok(true)
}

async fn save(conn: &mut AnyConnection, dialect: Dialect, saves: &[&Write]) -> Result<(), Fault> {
    for these in saves.chunks(MOST) {
        let mut update = SAVE.query(dialect, these.len());
        for write in these {
            update = update.bind(write.number).bind(write.token).bind(write.open_interrupts());
        }
        if SAVE.filled(update, these.len()).execute(&mut *conn).await?.rows_affected() != these.len() as u64 {
            return Err(Fault::Lost);
        }
    }
    Ok(())
}
