//! The logs of runs: batches of events, written for all runs together and read one run at a time.
//!
//! Writing is the hot path of a server with many detached runs, so a call is one transaction of few statements. A
//! row is a batch, for a row an event would cost several times as much.

use sqlx::{AnyConnection, Row as _};

use super::{
    Sql,
    connect::Dialect,
    error::Fault,
    key,
    many::{MOST, Many},
    rows::{self, number, run_columns, runs_of_thread},
};
use crate::{
    protocol::{RunId, ThreadId},
    store::{Append, Events, StoreError},
};

/// How many batches are read at a time, at most.
const BATCHES: i64 = 256;

/// The batches whose lease holds and that are not in the log yet. The lease is compared on the thread's locked
/// row (SQLite's transaction has locked everything): who takes it over waits, and reads the log after.
static INSERT: Many = Many::new(
    "WITH v (thread_number, token, run_number, first_event, last_event, body) AS (VALUES ",
    "(#, #, #, #, #, ?)",
    ") INSERT INTO agui_log (run_number, first_event, last_event, bytes, body) \
     SELECT v.run_number, v.first_event, v.last_event, octet_length(v.body), v.body \
     FROM v JOIN agui_threads AS t ON t.thread_number = v.thread_number AND t.token = v.token \
     WHERE t.holder IS NOT NULL AND v.last_event >= v.first_event AND NOT EXISTS (SELECT 1 FROM agui_log AS l \
     WHERE l.run_number = v.run_number AND l.last_event >= v.last_event) {FOR SHARE OF t }ON CONFLICT DO NOTHING",
);

const HOLDS: &str =
    "SELECT 1 AS holds FROM agui_threads WHERE thread_number = $1 AND token = $2 AND holder IS NOT NULL";

/// The run and a part of its log in one statement, and so as they were at one moment: a run that is read as
/// ended has its last event in the log. Which batches fit is found without reading their bodies, and once: the
/// inner queries name the run by parameters alone, for those that name a row outside are repeated for it.
const EVENTS: &str = concat!(
    "SELECT l.first_event, l.body, ",
    run_columns!(),
    " FROM ",
    runs_of_thread!("r"),
    " LEFT JOIN agui_log AS l ON l.run_number = r.run_number \
      AND l.last_event > $3 AND l.last_event <= (SELECT MAX(fits.last_event) FROM ( \
        SELECT head.last_event, SUM(head.bytes) OVER (ORDER BY head.last_event) - head.bytes AS before FROM ( \
          SELECT n.last_event, n.bytes FROM agui_log AS n WHERE n.run_number = \
          (SELECT o.run_number FROM ",
    runs_of_thread!("o"),
    " WHERE o.run_key = $2) \
          AND n.last_event > $3 ORDER BY n.last_event LIMIT $5 \
        ) AS head) AS fits WHERE fits.before < $4) \
     WHERE r.run_key = $2 ORDER BY l.last_event"
);

/// A batch as its columns hold it.
#[derive(Debug)]
pub(super) struct Batch {
    thread: i64,
    token: i64,
    pub(super) run: i64,
    pub(super) first: i64,
    pub(super) last: i64,
    pub(super) bytes: i64,
    pub(super) body: String,
}

impl Batch {
    pub(super) fn new(batch: &Append) -> Result<Self, Fault> {
        // JSON has neither, within strings or outside; with either the log could not be read again.
        if batch.events.iter().any(|event| event.bytes().any(|byte| byte == b'\n' || byte == 0)) {
            return Err(Fault::unreadable("an event is not one line of JSON"));
        }
        let body = batch.events.join("\n");
        Ok(Self {
            thread: batch.lease.thread_number,
            token: batch.lease.token,
            run: batch.lease.run_number,
            first: number(batch.first),
            last: number(batch.first.saturating_add(batch.events.len() as u64).saturating_sub(1)),
            bytes: number(body.len()),
            body,
        })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.last < self.first
    }
}

impl Sql {
    pub(super) async fn append_batches(&self, batches: &[Append]) -> Result<Vec<bool>, StoreError> {
        if batches.is_empty() {
            return Ok(Vec::new());
        }
        let batches = batches.iter().map(Batch::new).collect::<Result<Vec<_>, _>>()?;
        let dialect = self.dialect;
        self.transact_many(move |conn| Box::pin(append(conn, dialect, batches))).await
    }

    pub(super) async fn read_events(
        &self,
        thread: &ThreadId,
        run: &RunId,
        after: u64,
        max_bytes: usize,
    ) -> Result<Option<Events>, StoreError> {
        let (thread, run) = (thread.clone(), run.clone());
        self.read(move |conn| Box::pin(events(conn, thread, run, after, max_bytes))).await
    }
}

async fn append(conn: &mut AnyConnection, dialect: Dialect, batches: Vec<Batch>) -> Result<Vec<bool>, Fault> {
    let mut answers = Vec::with_capacity(batches.len());
    for these in batches.chunks(MOST) {
        let mut insert = INSERT.query(dialect, these.len());
        for batch in these {
            insert = insert.bind(batch.thread).bind(batch.token).bind(batch.run);
            insert = insert.bind(batch.first).bind(batch.last).bind(&batch.body);
        }
        // Fewer than there were: some are there already, or their lease was lost.
        let insert = INSERT.filled(insert, these.len());
        let all_new = insert.execute(&mut *conn).await?.rows_affected() == these.len() as u64;
        for batch in these {
            let holds = sqlx::query(HOLDS).bind(batch.thread).bind(batch.token);
            answers.push(all_new || holds.fetch_optional(&mut *conn).await?.is_some());
        }
    }
    Ok(answers)
}

async fn events(
    conn: &mut AnyConnection,
    thread: ThreadId,
    run: RunId,
    after: u64,
    max_bytes: usize,
) -> Result<Option<Events>, Fault> {
    let (thread_key, run_key) = (key::key(&thread), key::key(&run));
    // At least one event, whatever its size.
    let room = number(max_bytes.max(1));
    let read = sqlx::query(EVENTS).bind(&*thread_key).bind(&*run_key).bind(number(after)).bind(room).bind(BATCHES);
    let batches = read.fetch_all(conn).await?;
    let Some(row) = batches.first() else { return Ok(None) };
    let run = rows::run(row, &thread)?;
    let first = after.saturating_add(1);
    let (mut next, mut bytes, mut events) = (first, 0, Vec::new());
    'batches: for row in &batches {
        let Some(body) = row.try_get::<Option<&str>, _>("body")? else { break };
        // A batch may repeat what the one before it had.
        for (number, event) in (rows::count(row, "first_event")?..).zip(body.split('\n')) {
            if number < next {
                continue;
            }
            bytes += event.len();
            if number > next || (bytes > max_bytes && !events.is_empty()) {
                break 'batches;
            }
            events.push(event.to_owned());
            next += 1;
        }
    }
    Ok(Some(Events { first, events, run }))
}
