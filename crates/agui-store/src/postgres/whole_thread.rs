//! Reads and writes a thread with all its stored data except logs.

use std::time::Duration;

use sqlx::Row as _;

use super::{
    file_rows::use_files,
    pool::PostgresPool,
    reader::{BEGIN_SNAPSHOT, NODES, parse},
    words::{INDEXING_LATER, index},
};
use crate::{
    StoreResult, ThreadContent, ThreadKey,
    columns::ContentColumns,
    read_permits::ReadKind,
    rows,
    text::{name_to_text, to_json},
    thread_content::NumberedContent,
};

const INSERT: &str = include_str!("sql/insert.sql");
/// Time limit of writing a thread with its index: twice the time of 9 MB of Chinese on a loaded
/// server.
const INSERT_TIMEOUT: Duration = Duration::from_secs(60);

const THREAD: &str = "SELECT * FROM agui_threads WHERE owner = $1 AND id = $2";
const STATES: &str = "SELECT number, body FROM agui_states WHERE thread = $1 ORDER BY number";
const RUNS: &str = "SELECT *, 0::bigint AS logged FROM agui_runs WHERE thread = $1 AND ended_at IS NOT NULL ORDER BY number";

pub(super) async fn content(
    pool: &PostgresPool,
    key: &ThreadKey,
) -> StoreResult<Option<ThreadContent>> {
    let mut operation = pool.read(ReadKind::Thread, &key.owner).await?;
    operation.begin(BEGIN_SNAPSHOT).await?;
    let found = operation
        .first(sqlx::query(THREAD).bind(&*key.owner).bind(&*name_to_text(&key.id)))
        .await?;
    let Some(found) = found else {
        operation.commit().await?;
        return Ok(None);
    };
    let thread = rows::thread(&found)?;
    let [states, runs, nodes] =
        [STATES, RUNS, NODES].map(|sql| sqlx::query(sql).bind(thread.number));
    let [states, runs, nodes] =
        [operation.all(states).await?, operation.all(runs).await?, operation.all(nodes).await?];
    operation.commit().await?;
    parse(operation, move || {
        let content = NumberedContent {
            thread,
            state: rows::optional_number(&found, "state")?,
            states: states.iter().map(rows::numbered_state).collect::<Result<_, _>>()?,
            runs: runs.iter().map(rows::copied_run).collect::<Result<_, _>>()?,
            nodes: nodes.iter().map(rows::node).collect::<Result<_, _>>()?,
        };
        Ok(Some(content.with_positions()))
    })
    .await
}

pub(super) async fn insert(
    pool: &PostgresPool,
    key: &ThreadKey,
    content: &ThreadContent,
) -> StoreResult<bool> {
    let permit = pool.permit(ReadKind::Thread, &key.owner).await;
    let new = ContentColumns::new(key, content, INDEXING_LATER)?;
    let columns = to_json(&new);
    let mut operation = pool.operation_within(INSERT_TIMEOUT, Some(permit)).await?;
    operation.begin("BEGIN").await?;
    let inserted = operation.first(sqlx::query(INSERT).bind(columns)).await?;
    if let Some(row) = &inserted {
        let thread = row.try_get(0)?;
        use_files(&mut operation, thread, &new.files).await?;
        index(&mut operation, thread, &content.messages).await?;
    }
    operation.commit().await?;
    Ok(inserted.is_some())
}
