//! Makes the words of an older version of the index again, in the background.
//!
//! Until a message has its turn, a search finds it in the older form, which differs in the scripts that the newer one is for.
//! One server at a time has the row of `agui_indexing`, and the others wait. A row whose text changes meanwhile is left alone: who
//! changes it writes its words in the newer form.

use std::time::Duration;

use sqlx::Row as _;
use tokio::time::sleep;

use super::{
    pool::PostgresPool,
    words::{message_vector, vector},
};
use crate::{
    StoreResult,
    search::{INDEX_VERSION, folded},
    text::parse_json,
};

/// The pause after a step, which takes up to 0.3 s: runs go on meanwhile.
const STEP_PAUSE: Duration = Duration::from_millis(100);
/// The pause after a failure, and while another server makes the index.
const RETRY_PAUSE: Duration = Duration::from_secs(10);

/// Declares the table; a database that has words already has those of version 0.
pub(super) const DECLARE: &str = "
    CREATE TABLE IF NOT EXISTS agui_indexing (version BIGINT NOT NULL, thread BIGINT NOT NULL, message BIGINT NOT NULL);
    INSERT INTO agui_indexing SELECT 0, 0, 0 WHERE NOT EXISTS (SELECT 1 FROM agui_indexing)";
const VERSION: &str = "SELECT version FROM agui_indexing";
const LOCK: &str = "SELECT thread, message FROM agui_indexing FOR UPDATE SKIP LOCKED";
const PAGE: &str = include_str!("sql/older_words.sql");
const RENEW: &str = include_str!("sql/renew_words.sql");
const CONTINUE_AT: &str = "UPDATE agui_indexing SET thread = $1, message = $2 RETURNING version";
const COMPLETE: &str =
    "UPDATE agui_indexing SET thread = 0, message = 0, version = $1 RETURNING version";

pub(super) async fn renew_index(pool: PostgresPool) {
    loop {
        match renew_some(&pool).await {
            Ok(Progress::Complete) => return,
            Ok(Progress::Some) => sleep(STEP_PAUSE).await,
            Ok(Progress::Elsewhere) => sleep(RETRY_PAUSE).await,
            Err(error) => {
                tracing::warn!(?error, "cannot make the index of words again; trying again");
                sleep(RETRY_PAUSE).await;
            }
        }
    }
}

enum Progress {
    Some,
    Elsewhere,
    Complete,
}

async fn renew_some(pool: &PostgresPool) -> StoreResult<Progress> {
    let mut operation = pool.operation().await?;
    let version = operation.first(sqlx::query(VERSION)).await?;
    if version.is_some_and(|row| row.try_get(0).is_ok_and(|version: i64| version >= INDEX_VERSION))
    {
        return Ok(Progress::Complete);
    }
    operation.begin("BEGIN").await?;
    let Some(at) = operation.first(sqlx::query(LOCK)).await? else {
        operation.commit().await?;
        return Ok(Progress::Elsewhere);
    };
    let at: (i64, i64) = (at.try_get(0)?, at.try_get(1)?);
    let page = operation.all(sqlx::query(PAGE).bind(at.0).bind(at.1)).await?;
    let (mut threads, mut messages, mut older, mut newer) = (vec![], vec![], vec![], vec![]);
    for row in &page {
        let (thread, message): (i64, i64) = (row.try_get(0)?, row.try_get(1)?);
        let text: Option<&str> = row.try_get(3)?;
        // The words of a damaged or deleted message stay as they are.
        let words = match message {
            0 => text.map(|title| vector(&folded(title))),
            _ => text.and_then(|body| message_vector(&parse_json(body).ok()?)),
        };
        if let Some(words) = words {
            older.push(row.try_get::<String, _>(2)?);
            threads.push(thread);
            messages.push(message);
            newer.push(words);
        }
    }
    operation.all(sqlx::query(RENEW).bind(threads).bind(messages).bind(older).bind(newer)).await?;
    let progress = match page.last() {
        Some(last) => {
            let (thread, message): (i64, i64) = (last.try_get(0)?, last.try_get(1)?);
            operation.all(sqlx::query(CONTINUE_AT).bind(thread).bind(message)).await?;
            Progress::Some
        }
        None => {
            operation.all(sqlx::query(COMPLETE).bind(INDEX_VERSION)).await?;
            Progress::Complete
        }
    };
    operation.commit().await?;
    Ok(progress)
}
