//! Begins a run with one statement. If that writes nothing, a second one finds out why.

use sqlx::Row as _;

use super::{
    Database,
    words::{words_of_branch, words_of_title},
};
use crate::store::{
    BeginOutcome, Lease, NewRun, StoreError, ThreadSize, ThreadVersion, rows,
    text::{BranchColumns, list_to_json, name_to_text, to_json},
};

const BEGIN_NEW: &str = include_str!("sql/begin_new.sql");
const BEGIN: &str = include_str!("sql/begin.sql");

const FIND: &str = "
    SELECT r.*, t.version, t.messages, t.bytes, t.holder, t.lease_until,
        COALESCE((SELECT MAX(last) FROM agui_events WHERE run = r.number), 0) AS logged
    FROM agui_threads AS t JOIN agui_runs AS r ON r.number = t.run WHERE t.owner = $1 AND t.id = $2";

impl Database {
    pub(super) async fn begin(&self, run: &NewRun<'_>) -> Result<BeginOutcome, StoreError> {
        let (id, run_id, agent) = (name_to_text(&run.key.id), name_to_text(run.run_id), name_to_text(run.agent));
        let title = run.title.map(|title| name_to_text(title).into_owned());
        let title_words = run.title.map(words_of_title);
        let (branch, state) = (BranchColumns::new(&run.branch), run.state.map(to_json));
        let (new_words, updated_words) = words_of_branch(&run.branch);
        let (interrupts, answered) = (list_to_json(run.interrupts), list_to_json(&run.answered));
        let bytes = branch.bytes + state.as_ref().map_or(0, String::len) as u64;
        let size_after = |before: ThreadSize| ThreadSize {
            messages: before.messages + branch.bodies.len() as u64,
            bytes: before.bytes + bytes + branch.updated_bytes,
        };
        let query = match run.expected {
            Some(known) => sqlx::query(BEGIN).bind(known.number).bind(known.version),
            None => {
                let size = size_after(ThreadSize { messages: 0, bytes: 0 });
                if size.exceeds(run.max_size) {
                    return Ok(BeginOutcome::TooLarge(size));
                }
                sqlx::query(BEGIN_NEW).bind(&*run.key.owner).bind(&*id)
            }
        };
        let query = query.bind(&*agent).bind(&*run_id).bind(run.detached).bind(&**run.holder).bind(run.lease_until);
        let query = query.bind(run.now).bind(interrupts).bind(answered).bind(state).bind(bytes.cast_signed());
        let query = query.bind(&branch.ids).bind(&branch.roles).bind(&branch.bodies);
        let query = match run.expected {
            None => query.bind(title).bind(new_words).bind(title_words).bind(run.request),
            Some(_) => query
                .bind(&branch.runs)
                .bind(branch.base)
                .bind(run.state_number)
                .bind(&branch.updated_numbers)
                .bind(&branch.updated_bodies)
                .bind(saturating_i64(run.max_size.messages))
                .bind(saturating_i64(run.max_size.bytes.saturating_sub(branch.updated_bytes)))
                .bind(title)
                .bind(new_words)
                .bind(updated_words)
                .bind(title_words)
                .bind(run.request),
        };
        let mut operation = self.operation().await?;
        if let Some(row) = operation.first(query).await? {
            return Ok(BeginOutcome::Begun {
                lease: Lease { thread: row.try_get(0)?, run: row.try_get(1)?, holder: run.holder.clone() },
                version: run.expected.map_or(1, |known| known.version + 1),
                last_message: row.try_get(2)?,
                state_number: row.try_get(3)?,
                replaced: row.try_get(4)?,
            });
        }
        let found = operation.first(sqlx::query(FIND).bind(&*run.key.owner).bind(&*id)).await?;
        let Some(found) = found else { return Ok(BeginOutcome::Changed) };
        let record = rows::run(&found)?;
        if let Some(holder) = found.try_get::<Option<String>, _>("holder")? {
            let is_lost = found.try_get::<Option<i64>, _>("lease_until")?.is_some_and(|until| until < run.now);
            let lease = Lease { thread: record.thread, run: record.number, holder: holder.into() };
            return Ok(BeginOutcome::Busy { run: record, lost: is_lost.then_some(lease) });
        }
        let version = ThreadVersion { number: record.thread, version: found.try_get("version")? };
        let [messages, bytes] = ["messages", "bytes"].map(|column| found.try_get::<i64, _>(column));
        let size = size_after(ThreadSize { messages: messages?.cast_unsigned(), bytes: bytes?.cast_unsigned() });
        Ok(if run.expected == Some(version) && size.exceeds(run.max_size) {
            BeginOutcome::TooLarge(size)
        } else {
            BeginOutcome::Changed
        })
    }
}

fn saturating_i64(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
