//! The search index: it is brought up to date by each search, so that runs do not pay for it.
//!
//! A row of `agui_words` has the words of a title or a message. The table holds no text, so a row is removed by naming its
//! words once more: those of the stored message, which is therefore indexed again when it is updated and removed from the
//! index before it is deleted. `secure-delete` removes the words from the file at once.
//!
//! Measured on one core with 100,000 threads of 4 messages each: a search takes 1 to 20 ms, where LIKE takes 500 ms; one that
//! also selects by archive or agent, and excludes all 400,000 matches, takes 170 ms. A row costs 40 µs if many are written
//! together.

use std::time::{Duration, Instant};

use rusqlite::{Connection, OptionalExtension as _, Row, params};

use super::{
    reader::all,
    words::{expression, owner_word},
    writer::Tx,
};
use crate::{
    protocol::Message,
    store::{
        StoreError, ThreadPage, ThreadSummary, rows,
        search::{searched_text, terms},
        text::{from_json, name_to_text},
        words::separated,
    },
};

/// The time that one step of indexing occupies the writer.
const INDEX_STEP: Duration = Duration::from_millis(4);
const MAX_STEP_MESSAGES: i64 = 50;
/// The row ids of a thread are `number << MESSAGE_BITS` for the title, and the following ones for its messages.
const MESSAGE_BITS: u32 = 24;
const MAX_INDEXED_MESSAGE: i64 = (1 << MESSAGE_BITS) - 1;
/// The number of matching threads from which a page is made, those that were created last.
const MAX_MATCHING_THREADS: i64 = 5000;

const NEXT_THREAD: &str = "
    SELECT number, owner, indexed, title, indexed_title FROM agui_threads
    WHERE (indexed < messages OR title IS NOT indexed_title) AND owner <> '' LIMIT 1";
const NEXT_MESSAGES: &str = "
    SELECT number, body FROM agui_messages WHERE thread = ?1 AND number > ?2 ORDER BY number LIMIT ?3";
const ADD: &str = "INSERT INTO agui_words (rowid, owner, words) VALUES (?1, ?2, ?3)";
const REMOVE: &str = "INSERT INTO agui_words (agui_words, rowid, owner, words) VALUES ('delete', ?1, ?2, ?3)";
const SET_INDEXED: &str = "UPDATE agui_threads SET indexed = ?2 WHERE number = ?1";
const SET_INDEXED_TITLE: &str = "UPDATE agui_threads SET indexed_title = ?2 WHERE number = ?1";

const FIND: &str = "
    WITH found (thread) AS (
        SELECT DISTINCT t.number FROM agui_words AS w CROSS JOIN agui_threads AS t ON t.number = w.rowid >> 24
        WHERE w.agui_words MATCH ?6 AND t.owner = ?1 AND t.run < ?2
            AND t.archived = COALESCE(?4, t.archived) AND t.agent = COALESCE(?5, t.agent)
        ORDER BY w.rowid DESC LIMIT ?7)
    SELECT t.* FROM found JOIN agui_threads AS t ON t.number = found.thread
    ORDER BY t.run DESC LIMIT ?3";

/// A deleted thread, with the last message that is indexed.
const DELETED_THREAD: &str = "
    SELECT t.former_owner, t.indexed, t.indexed_title, m.body FROM agui_threads AS t
    LEFT JOIN agui_messages AS m ON m.thread = t.number AND m.number = t.indexed WHERE t.number = ?1";

const INDEXED_MESSAGE: &str = "
    SELECT t.owner, m.body FROM agui_threads AS t JOIN agui_messages AS m ON m.thread = t.number AND m.number = ?2
    WHERE t.number = ?1 AND t.indexed >= ?2";

pub(super) fn find(
    conn: &Connection,
    owner: &str,
    page: &ThreadPage,
    query: &str,
) -> Result<Vec<ThreadSummary>, StoreError> {
    let Some(expression) = expression(owner, &terms(query)) else { return Ok(Vec::new()) };
    let (after, agent) = (page.after.unwrap_or(i64::MAX), page.agent.as_deref().map(name_to_text));
    let params = params![owner, after, page.limit as i64, page.archived, agent, expression, MAX_MATCHING_THREADS];
    all(conn, FIND, params, |row| rows::summary(row))
}

struct PendingThread {
    number: i64,
    owner: String,
    indexed: i64,
    title: Option<String>,
    indexed_title: Option<String>,
}

/// Indexes what is not indexed yet, for the time of [`INDEX_STEP`]. Returns whether there may be more.
pub(super) fn index_step(tx: &mut Tx<'_>) -> Result<bool, StoreError> {
    let begin = Instant::now();
    while begin.elapsed() < INDEX_STEP {
        let next = tx.conn.prepare_cached(NEXT_THREAD)?.query_row([], |row| {
            let [title, indexed_title] = [row.get(3)?, row.get(4)?];
            Ok(PendingThread { number: row.get(0)?, owner: row.get(1)?, indexed: row.get(2)?, title, indexed_title })
        });
        let Some(thread) = next.optional()? else { return Ok(false) };
        let owner = owner_word(&thread.owner);
        if thread.title != thread.indexed_title {
            write_title(tx, REMOVE, thread.number, &owner, thread.indexed_title.as_deref())?;
            write_title(tx, ADD, thread.number, &owner, thread.title.as_deref())?;
            tx.conn.prepare_cached(SET_INDEXED_TITLE)?.execute(params![thread.number, thread.title])?;
        }
        let params = params![thread.number, thread.indexed, MAX_STEP_MESSAGES];
        let message = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?));
        let messages: Vec<(i64, String)> = all(tx.conn, NEXT_MESSAGES, params, message)?;
        for (number, body) in &messages {
            write_message(tx, ADD, thread.number, *number, &owner, body)?;
        }
        if let Some((last, _)) = messages.last() {
            tx.conn.prepare_cached(SET_INDEXED)?.execute([thread.number, *last])?;
        }
    }
    Ok(true)
}

/// Removes a message from the index, before it is changed. Returns whether it was indexed.
pub(super) fn remove_message(tx: &Tx<'_>, thread: i64, number: i64) -> Result<bool, StoreError> {
    write_indexed(tx, REMOVE, thread, number)
}

/// Adds a message that was removed and has been changed.
pub(super) fn add_message(tx: &Tx<'_>, thread: i64, number: i64) -> Result<(), StoreError> {
    write_indexed(tx, ADD, thread, number).map(drop)
}

fn write_indexed(tx: &Tx<'_>, sql: &str, thread: i64, number: i64) -> Result<bool, StoreError> {
    let mut select = tx.conn.prepare_cached(INDEXED_MESSAGE)?;
    let found = select.query_row([thread, number], |row| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?)));
    let Some((owner, body)) = found.optional()? else { return Ok(false) };
    write_message(tx, sql, thread, number, &owner_word(&owner), &body)?;
    Ok(true)
}

/// Removes one row of a deleted thread from the index. Returns whether there was one.
pub(super) fn remove_one(tx: &Tx<'_>, thread: i64) -> Result<bool, StoreError> {
    let mut select = tx.conn.prepare_cached(DELETED_THREAD)?;
    let read = |row: &Row<'_>| {
        Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?, row.get::<_, Option<String>>(2)?, row.get(3)?))
    };
    let (owner, indexed, title, body): (_, _, _, Option<String>) = select.query_row([thread], read)?;
    let owner = owner_word(&owner);
    if let Some(body) = body {
        write_message(tx, REMOVE, thread, indexed, &owner, &body)?;
        tx.conn.prepare_cached(SET_INDEXED)?.execute([thread, indexed - 1])?;
        return Ok(true);
    }
    if let Some(title) = title {
        write_title(tx, REMOVE, thread, &owner, Some(&title))?;
        tx.conn.prepare_cached(SET_INDEXED_TITLE)?.execute(params![thread, None::<String>])?;
        return Ok(true);
    }
    Ok(false)
}

fn write_title(tx: &Tx<'_>, sql: &str, thread: i64, owner: &str, title: Option<&str>) -> Result<(), StoreError> {
    match title {
        Some(title) => write(tx, sql, thread << MESSAGE_BITS, owner, title),
        None => Ok(()),
    }
}

fn write_message(tx: &Tx<'_>, sql: &str, thread: i64, number: i64, owner: &str, body: &str) -> Result<(), StoreError> {
    let text = from_json::<Message>(body).ok().and_then(|message| searched_text(&message));
    match text.filter(|_| number <= MAX_INDEXED_MESSAGE) {
        Some(text) => write(tx, sql, thread << MESSAGE_BITS | number, owner, &text),
        None => Ok(()),
    }
}

fn write(tx: &Tx<'_>, sql: &str, row: i64, owner: &str, text: &str) -> Result<(), StoreError> {
    let words = separated(text);
    if !words.is_empty() {
        tx.conn.prepare_cached(sql)?.execute(params![row, owner, words])?;
    }
    Ok(())
}
