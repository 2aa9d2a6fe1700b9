//! The logs of runs: batches of events, written for all runs together and read one run at a time.
//!
//! Writing is the hot path of a server with many detached runs, so a call is one transaction of few statements:
//! rows go in by the dozen, in a few fixed numbers, so that each statement is prepared once. A row is a
//! batch, for a row an event would cost several times as much.

use std::sync::LazyLock;

use sqlx::{AnyConnection, Row as _};

use super::{
    Sql,
    connect::Dialect,
    error::Fault,
    key,
    rows::{self, number, run_columns},
};
use crate::{
    protocol::{RunId, ThreadId},
    store::{Append, Events, StoreError},
};

/// How many rows a statement takes.
const ROWS: [usize; 4] = [100, 20, 4, 1];

/// How many batches are read at a time, at most.
const BATCHES: i64 = 256;

/// The batches whose lease holds and that are not in the log yet. The lease is compared on the thread's locked
/// row (SQLite's transaction has locked everything): who takes it over waits, and reads the log after.
static INSERT: LazyLock<[Vec<&'static str>; 2]> = LazyLock::new(|| {
    let statement = |rows, dialect| {
        let lock = if dialect == Dialect::Postgres { "FOR SHARE OF t" } else { "" };
        let text = format!(
            "WITH v (thread_key, token, run_number, first_event, last_event, body) AS (VALUES {}) \
             INSERT INTO agui_log (run_number, first_event, last_event, bytes, body) \
             SELECT v.run_number, v.first_event, v.last_event, octet_length(v.body), v.body \
             FROM v JOIN agui_threads AS t ON t.thread_key = v.thread_key AND t.token = v.token \
             WHERE t.holder IS NOT NULL AND v.last_event >= v.first_event AND NOT EXISTS (SELECT 1 FROM agui_log AS l \
             WHERE l.run_number = v.run_number AND l.last_event >= v.last_event) {lock} ON CONFLICT DO NOTHING",
            values(rows, dialect)
        );
        // Made once and kept for as long as the program runs.
        &*text.leak()
    };
    [Dialect::Sqlite, Dialect::Postgres].map(|dialect| ROWS.map(|rows| statement(rows, dialect)).to_vec())
});

const HOLDS: &str = "SELECT 1 AS holds FROM agui_threads WHERE thread_key = $1 AND token = $2 AND holder IS NOT NULL";

/// The run and a part of its log in one statement, and so as they were at one moment: a run that is read as
/// ended has its last event in the log. Which batches fit is found without reading their bodies, and once: the
/// inner queries name the run by parameters alone, for those that name a row outside are repeated for it.
const EVENTS: &str = concat!(
    "SELECT l.first_event, l.body, ",
    run_columns!(),
    " FROM agui_runs AS r LEFT JOIN agui_log AS l ON l.run_number = r.run_number \
      AND l.last_event > $3 AND l.last_event <= (SELECT MAX(fits.last_event) FROM ( \
        SELECT head.last_event, SUM(head.bytes) OVER (ORDER BY head.last_event) - head.bytes AS before FROM ( \
          SELECT n.last_event, n.bytes FROM agui_log AS n WHERE n.run_number = \
          (SELECT o.run_number FROM agui_runs AS o WHERE o.thread_key = $1 AND o.run_key = $2) \
          AND n.last_event > $3 ORDER BY n.last_event LIMIT $5 \
        ) AS head) AS fits WHERE fits.before < $4) \
     WHERE r.thread_key = $1 AND r.run_key = $2 ORDER BY l.last_event"
);

/// `($1, CAST($2 AS BIGINT), …), (…)`, but in SQLite `?`: it looks for a parameter's number among all of the
/// statement, for each, and six hundred are too many for that.
fn values(rows: usize, dialect: Dialect) -> String {
    let parameter = |number: usize| match dialect {
        Dialect::Sqlite => "?".to_owned(),
        Dialect::Postgres => format!("${number}"),
    };
    let row = |row: usize| {
        let first = 6 * row + 1;
        let numbers: Vec<_> = (1..5).map(|n| format!("CAST({} AS BIGINT)", parameter(first + n))).collect();
        format!("({}, {}, {})", parameter(first), numbers.join(", "), parameter(first + 5))
    };
    (0..rows).map(row).collect::<Vec<_>>().join(", ")
}

/// A batch as its columns hold it.
pub(super) struct Batch {
    thread: String,
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
            thread: key::key(&batch.lease.thread_id).into_owned(),
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
        let statements: &'static [&'static str] = match self.dialect {
            Dialect::Sqlite => &INSERT[0],
            Dialect::Postgres => &INSERT[1],
        };
        self.transact_many(move |conn| Box::pin(append(conn, batches, statements))).await
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

async fn append(
    conn: &mut AnyConnection,
    batches: Vec<Batch>,
    statements: &[&'static str],
) -> Result<Vec<bool>, Fault> {
    let mut answers = vec![true; batches.len()];
    let mut at = 0;
    let mut batches = batches.into_iter();
    for (rows, statement) in ROWS.into_iter().zip(statements) {
        while batches.len() >= rows {
            let mut insert = sqlx::query(*statement);
            let mut leases = Vec::with_capacity(rows);
            for batch in batches.by_ref().take(rows) {
                leases.push((batch.thread.clone(), batch.token));
                insert = insert.bind(batch.thread).bind(batch.token).bind(batch.run);
                insert = insert.bind(batch.first).bind(batch.last).bind(batch.body);
            }
            // Fewer than there were: some are there already, or their lease was lost.
            if insert.execute(&mut *conn).await?.rows_affected() != rows as u64 {
                for (answer, (thread, token)) in answers[at..].iter_mut().zip(leases) {
                    let holds = sqlx::query(HOLDS).bind(thread).bind(token).fetch_optional(&mut *conn).await?;
                    *answer = holds.is_some();
                }
            }
            at += rows;
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
