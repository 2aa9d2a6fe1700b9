//! Lists the threads of an owner, and searches them.

use super::{Database, words::query};
use crate::store::{StoreError, ThreadPage, ThreadSummary, rows, search::terms, text::name_to_text};

/// A search looks through this many of the latest threads first. The index finds no word in order of threads, and would
/// read all threads with a common one.
const NEWEST_THREADS: i64 = 1000;

/// The threads of `$1` before the run `$2`, the newest first. Goes from one thread to the next older one by the index: with
/// `ORDER BY … LIMIT $3` alone, the generic plan reads and sorts all threads, 60 ms for 100,000 instead of 2 ms.
macro_rules! newest {
    ($then:literal) => {
        concat!(
            "WITH RECURSIVE newest AS (
                (SELECT * FROM agui_threads
                WHERE owner = $1 AND run < $2 AND ($4 IS NULL OR archived = $4) AND ($5 IS NULL OR agent = $5)
                ORDER BY run DESC LIMIT 1)
                UNION ALL
                SELECT older.* FROM newest, LATERAL (
                    SELECT * FROM agui_threads
                    WHERE owner = $1 AND run < newest.run AND ($4 IS NULL OR archived = $4) AND ($5 IS NULL OR agent = $5)
                    ORDER BY run DESC LIMIT 1) AS older
            ) ",
            $then
        )
    };
}

const THREADS: &str = newest!("SELECT * FROM (SELECT * FROM newest LIMIT $3) AS page ORDER BY run DESC");

/// Looks for `$6` in one thread after the other, in the latest `$7`. `OFFSET 0` keeps the planner from the index of words.
const SEARCH_NEWEST: &str = newest!(
    "SELECT * FROM (
        SELECT t.* FROM (SELECT * FROM newest LIMIT $7) AS t
        WHERE EXISTS (
            SELECT 1 FROM (SELECT words FROM agui_words WHERE thread = t.number OFFSET 0) AS w
            WHERE w.words @@ (SELECT replace($6, '@', agui_owner_word($1))::tsquery))
        LIMIT $3
    ) AS page ORDER BY run DESC"
);

/// Finds `$6` by the index of words. `OFFSET 0` keeps the planner, which does not know `$6`, from reading all threads.
const SEARCH: &str = "
    SELECT t.* FROM (
        SELECT DISTINCT thread FROM agui_words WHERE words @@ (SELECT replace($6, '@', agui_owner_word($1))::tsquery)
    ) AS found, LATERAL (SELECT * FROM agui_threads WHERE number = found.thread OFFSET 0) AS t
    WHERE t.owner = $1 AND t.run < $2 AND ($4 IS NULL OR t.archived = $4) AND ($5 IS NULL OR t.agent = $5)
    ORDER BY t.run DESC LIMIT $3";

impl Database {
    pub(super) async fn threads(&self, owner: &str, page: &ThreadPage) -> Result<Vec<ThreadSummary>, StoreError> {
        let limit = i64::try_from(page.limit).unwrap_or(i64::MAX);
        let agent = page.agent.as_deref().map(name_to_text);
        let list = |sql| {
            let list = sqlx::query(sql).bind(owner).bind(page.after.unwrap_or(i64::MAX)).bind(limit);
            list.bind(page.archived).bind(agent.as_deref())
        };
        let Some(text) = &page.query else {
            return self.all(list(THREADS)).await?.iter().map(rows::summary).collect();
        };
        let Some(words) = query(&terms(text)) else { return Ok(Vec::new()) };
        let mut operation = self.operation().await?;
        let mut found = operation.all(list(SEARCH_NEWEST).bind(&words).bind(NEWEST_THREADS)).await?;
        if found.len() < page.limit {
            found = operation.all(list(SEARCH).bind(&words)).await?;
        }
        found.iter().map(rows::summary).collect()
    }
}
