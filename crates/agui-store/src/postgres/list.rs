//! Lists the threads of an owner, and searches them.

use super::{pool::PostgresPool, words::query};
use crate::{
    RunNumber, StoreResult, Thread, ThreadPage, read_permits::ReadKind, rows, search::terms,
    text::name_to_text,
};

/// A search looks through this many of the latest threads first. The index is not in the order of
/// threads, so it would read all threads that have a common word.
const NEWEST_THREADS: i64 = 1000;

const THREADS: &str = include_str!("sql/threads.sql");
const SEARCH_NEWEST: &str = include_str!("sql/search_newest.sql");
const SEARCH: &str = include_str!("sql/search.sql");

pub(super) async fn threads(
    pool: &PostgresPool,
    owner: &str,
    page: &ThreadPage,
) -> StoreResult<Vec<Thread>> {
    let limit = i64::try_from(page.limit).unwrap_or(i64::MAX);
    let agent = page.agent.as_deref().map(name_to_text);
    let list = |sql| {
        let list = sqlx::query(sql)
            .bind(owner)
            .bind(page.after.unwrap_or(RunNumber(i64::MAX)))
            .bind(limit);
        list.bind(page.archived).bind(agent.as_deref())
    };
    let Some(text) = &page.query else {
        return pool
            .read(ReadKind::Page, owner)
            .await?
            .all(list(THREADS))
            .await?
            .iter()
            .map(rows::thread)
            .collect();
    };
    let Some(words) = query(&terms(text)) else { return Ok(Vec::new()) };
    let mut operation = pool.read(ReadKind::Search, owner).await?;
    let mut found = operation.all(list(SEARCH_NEWEST).bind(&words).bind(NEWEST_THREADS)).await?;
    if found.len() < page.limit {
        found = operation.all(list(SEARCH).bind(&words)).await?;
    }
    found.iter().map(rows::thread).collect()
}
