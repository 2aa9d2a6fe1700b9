//! Reads a thread with everything that is stored of it except logs, and creates threads with their content.

use sqlx::Row as _;

use super::{
    Database,
    reader::BEGIN_SNAPSHOT,
    words::{words_of_message, words_of_title},
};
use crate::store::{
    NewThread, StoreError, ThreadContent, ThreadKey, content_columns::ContentColumns, content_rows::ContentRows,
    text::name_to_text,
};

const THREAD: &str = "SELECT * FROM agui_threads WHERE owner = $1 AND id = $2";
const MESSAGES: &str = "SELECT parent, run, body, feedback FROM agui_messages WHERE thread = $1 ORDER BY number";
const STATES: &str = "SELECT number, body FROM agui_states WHERE thread = $1 ORDER BY number";
const RUNS: &str =
    "SELECT *, 0::bigint AS logged FROM agui_runs WHERE thread = $1 AND ended_at IS NOT NULL ORDER BY number";

const RUN_NUMBERS: &str = "SELECT nextval('agui_run_number') FROM generate_series(1, $1)";
const INSERT_THREAD: &str = "
    INSERT INTO agui_threads (owner, id, agent, title, archived, metadata, head, state, interrupts, messages, bytes,
        version, run, run_id, cancel, created_at, updated_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, 1, $12, $13, FALSE, $14, $15)
    ON CONFLICT (owner, id) DO NOTHING RETURNING number";
const INSERT_MESSAGES: &str = "
    INSERT INTO agui_messages (thread, number, parent, id, role, run, body, feedback)
    SELECT $1, new.number, new.parent, new.id, new.role, new.run, new.body, new.feedback
    FROM unnest($2::bigint[], $3::text[], $4::text[], $5::bigint[], $6::text[], $7::text[])
        WITH ORDINALITY AS new (parent, id, role, run, body, feedback, number)";
/// The first element of `$3` is the title's, the others are the messages'.
const INSERT_WORDS: &str = "
    INSERT INTO agui_words (thread, message, words)
    SELECT $1, new.position - 1, replace(new.words, '@', agui_owner_word($2))::tsvector
    FROM unnest($3::text[]) WITH ORDINALITY AS new (words, position) WHERE new.words IS NOT NULL";
const INSERT_STATES: &str = "
    INSERT INTO agui_states (thread, number, body)
    SELECT $1, $2 + new.number - 1, new.body FROM unnest($3::text[]) WITH ORDINALITY AS new (body, number)";
const INSERT_RUNS: &str = "
    INSERT INTO agui_runs (thread, number, id, agent, detached, status, delivered, head, state, interrupts, answered,
        started_at, ended_at, events, usage, failure, has_log)
    SELECT $1, new.number, new.id, new.agent, FALSE, new.status, new.delivered, new.head, new.state, new.interrupts,
        new.answered, new.started_at, new.ended_at, new.events, new.usage, new.failure, FALSE
    FROM unnest($2::bigint[], $3::text[], $4::text[], $5::text[], $6::boolean[], $7::bigint[], $8::bigint[],
        $9::text[], $10::text[], $11::bigint[], $12::bigint[], $13::bigint[], $14::text[], $15::text[])
        AS new (number, id, agent, status, delivered, head, state, interrupts, answered, started_at, ended_at, events,
            usage, failure)";

impl Database {
    pub(super) async fn content(&self, key: &ThreadKey) -> Result<Option<ThreadContent>, StoreError> {
        let mut operation = self.operation().await?;
        operation.begin(BEGIN_SNAPSHOT).await?;
        let found = operation.first(sqlx::query(THREAD).bind(&*key.owner).bind(&*name_to_text(&key.id))).await?;
        let Some((mut content, number)) = found.map(|row| ContentRows::new(&row)).transpose()? else {
            operation.commit().await?;
            return Ok(None);
        };
        operation.all(sqlx::query(STATES).bind(number)).await?.iter().try_for_each(|row| content.state(row))?;
        operation.all(sqlx::query(RUNS).bind(number)).await?.iter().try_for_each(|row| content.run(row))?;
        operation.all(sqlx::query(MESSAGES).bind(number)).await?.iter().try_for_each(|row| content.message(row))?;
        operation.commit().await?;
        Ok(Some(content.finish()))
    }

    /// Returns whether the thread is new.
    pub(super) async fn insert(&self, new: NewThread<'_>) -> Result<bool, StoreError> {
        let mut words = vec![new.content.title.as_deref().map(words_of_title)];
        words.extend(new.content.messages.iter().map(|copied| words_of_message(&copied.message)));
        let columns = ContentColumns::new(new);
        let mut operation = self.operation().await?;
        operation.begin("BEGIN").await?;
        let count = columns.runs.len() as i64;
        let runs = operation.all(sqlx::query(RUN_NUMBERS).bind(count)).await?;
        let runs: Vec<i64> = runs.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>()?;
        let (first, last) = (runs.first().copied().unwrap_or_default(), runs.last().copied().unwrap_or_default());
        // All numbers are smaller than those of later runs.
        let first_state = 2 * first;
        let state_at = |position: Option<i64>| position.map(|position| first_state + position);
        let insert = sqlx::query(INSERT_THREAD).bind(&*columns.owner).bind(&columns.id).bind(&columns.agent);
        let insert = insert.bind(&columns.title).bind(columns.archived).bind(&columns.metadata).bind(columns.head);
        let insert = insert.bind(state_at(columns.state)).bind(&columns.interrupts);
        let insert = insert.bind(columns.messages.len() as i64).bind(columns.bytes).bind(last);
        let insert = insert.bind(columns.runs.last().map(|run| run.id.as_str()));
        let insert = insert.bind(columns.created_at).bind(columns.updated_at);
        let Some(row) = operation.first(insert).await? else {
            operation.commit().await?;
            return Ok(false);
        };
        let thread: i64 = row.try_get(0)?;
        let messages = &columns.messages;
        let insert = sqlx::query(INSERT_MESSAGES).bind(thread);
        let insert = insert.bind(messages.iter().map(|message| message.parent).collect::<Vec<_>>());
        let insert = insert.bind(messages.iter().map(|message| message.id.as_str()).collect::<Vec<_>>());
        let insert = insert.bind(messages.iter().map(|message| message.role).collect::<Vec<_>>());
        let run_of = |run: Option<usize>| run.and_then(|run| runs.get(run).copied());
        let insert = insert.bind(messages.iter().map(|message| run_of(message.run)).collect::<Vec<_>>());
        let insert = insert.bind(messages.iter().map(|message| message.body.as_str()).collect::<Vec<_>>());
        let insert = insert.bind(messages.iter().map(|message| message.feedback.as_deref()).collect::<Vec<_>>());
        operation.all(insert).await?;
        operation.all(sqlx::query(INSERT_WORDS).bind(thread).bind(&*columns.owner).bind(words)).await?;
        operation.all(sqlx::query(INSERT_STATES).bind(thread).bind(first_state).bind(&columns.states)).await?;
        let each = &columns.runs;
        let insert = sqlx::query(INSERT_RUNS).bind(thread).bind(runs);
        let insert = insert.bind(each.iter().map(|run| run.id.as_str()).collect::<Vec<_>>());
        let insert = insert.bind(each.iter().map(|run| run.agent.as_str()).collect::<Vec<_>>());
        let insert = insert.bind(each.iter().map(|run| run.status).collect::<Vec<_>>());
        let insert = insert.bind(each.iter().map(|run| run.delivered).collect::<Vec<_>>());
        let insert = insert.bind(each.iter().map(|run| run.head).collect::<Vec<_>>());
        let insert = insert.bind(each.iter().map(|run| state_at(run.state)).collect::<Vec<_>>());
        let insert = insert.bind(each.iter().map(|run| run.interrupts.as_deref()).collect::<Vec<_>>());
        let insert = insert.bind(each.iter().map(|run| run.answered.as_deref()).collect::<Vec<_>>());
        let insert = insert.bind(each.iter().map(|run| run.started_at).collect::<Vec<_>>());
        let insert = insert.bind(each.iter().map(|run| run.ended_at).collect::<Vec<_>>());
        let insert = insert.bind(each.iter().map(|run| run.events).collect::<Vec<_>>());
        let insert = insert.bind(each.iter().map(|run| run.usage.as_deref()).collect::<Vec<_>>());
        let insert = insert.bind(each.iter().map(|run| run.failure.as_deref()).collect::<Vec<_>>());
        operation.all(insert).await?;
        operation.commit().await?;
        Ok(true)
    }
}
