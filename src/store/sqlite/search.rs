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

use rusqlite::{Connection, Row, named_params};

use super::{
    reader::{all, one},
    writer::Tx,
};
use crate::{
    protocol::Message,
    store::{
        StoreResult, ThreadPage, ThreadSummary, rows,
        search::{searched_text, terms},
        text::{from_json, name_to_text},
        words::{is_completed, separated},
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
    SELECT number, body FROM agui_messages WHERE thread = ? AND number > ? ORDER BY number LIMIT ?";
pub(super) const ADD: &str = "INSERT INTO agui_words (rowid, owner, words) VALUES (?, ?, ?)";
pub(super) const REMOVE: &str = "INSERT INTO agui_words (agui_words, rowid, owner, words) VALUES ('delete', ?, ?, ?)";
const SET_INDEXED: &str = "UPDATE agui_threads SET indexed = ? WHERE number = ?";
const SET_INDEXED_TITLE: &str = "UPDATE agui_threads SET indexed_title = ? WHERE number = ?";

const FIND: &str = include_str!("sql/search.sql");

/// A deleted thread, with the last message that is indexed.
const DELETED_THREAD: &str = "
    SELECT t.former_owner, t.indexed, t.indexed_title, m.body FROM agui_threads AS t
    LEFT JOIN agui_messages AS m ON m.thread = t.number AND m.number = t.indexed WHERE t.number = ?1";

const INDEXED_MESSAGE: &str = "
    SELECT t.owner, m.body FROM agui_threads AS t JOIN agui_messages AS m ON m.thread = t.number AND m.number = ?2
    WHERE t.number = ?1 AND t.indexed >= ?2";

pub(super) fn find(conn: &Connection, owner: &str, page: &ThreadPage, query: &str) -> StoreResult<Vec<ThreadSummary>> {
    let Some(expression) = expression(owner, &terms(query)) else { return Ok(Vec::new()) };
    let (after, agent) = (page.after.unwrap_or(i64::MAX), page.agent.as_deref().map(name_to_text));
    let params = named_params! {
        ":owner": owner, ":after": after, ":archived": page.archived, ":agent": agent, ":expression": expression,
        ":matching": MAX_MATCHING_THREADS, ":limit": page.limit as i64,
    };
    all(conn, FIND, params, |row| rows::summary(row))
}

struct PendingThread {
    number: i64,
    owner: String,
    indexed: i64,
    title: Option<String>,
    indexed_title: Option<String>,
}

impl PendingThread {
    fn read(row: &Row<'_>) -> StoreResult<Self> {
        let [title, indexed_title] = [row.get("title")?, row.get("indexed_title")?];
        let [number, indexed] = [row.get("number")?, row.get("indexed")?];
        Ok(Self { number, owner: row.get("owner")?, indexed, title, indexed_title })
    }
}

/// Indexes what is not indexed yet, for the time of [`INDEX_STEP`]. Returns whether there may be more.
pub(super) fn index_step(tx: &mut Tx<'_>) -> StoreResult<bool> {
    let begin = Instant::now();
    while begin.elapsed() < INDEX_STEP {
        let Some(thread) = one(tx.conn, NEXT_THREAD, [], PendingThread::read)? else { return Ok(false) };
        let (number, owner) = (thread.number, owner_word(&thread.owner));
        if thread.title != thread.indexed_title {
            write_title(tx, REMOVE, number, &owner, thread.indexed_title.as_deref())?;
            write_title(tx, ADD, number, &owner, thread.title.as_deref())?;
            tx.execute(SET_INDEXED_TITLE, (thread.title, number))?;
        }
        let message = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?));
        let next = (number, thread.indexed, MAX_STEP_MESSAGES);
        let messages: Vec<(i64, String)> = all(tx.conn, NEXT_MESSAGES, next, message)?;
        for (message, body) in &messages {
            write_message(tx, ADD, number, *message, &owner, body)?;
        }
        if let Some((last, _)) = messages.last() {
            tx.execute(SET_INDEXED, (last, number))?;
        }
    }
    Ok(true)
}

/// Removes a message from the index before it is changed, or adds it again. Returns whether it was indexed.
pub(super) fn write_indexed(tx: &Tx<'_>, sql: &str, thread: i64, number: i64) -> StoreResult<bool> {
    let read = |row: &Row<'_>| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?));
    let found = one(tx.conn, INDEXED_MESSAGE, [thread, number], read)?;
    let Some((owner, body)) = found else { return Ok(false) };
    write_message(tx, sql, thread, number, &owner_word(&owner), &body)?;
    Ok(true)
}

/// Removes one row of a deleted thread from the index. Returns whether there was one.
pub(super) fn remove_one(tx: &Tx<'_>, thread: i64) -> StoreResult<bool> {
    let mut select = tx.conn.prepare_cached(DELETED_THREAD)?;
    let (owner, indexed, title, body): (String, i64, Option<String>, Option<String>) =
        select.query_row([thread], |row| row.try_into())?;
    let owner = owner_word(&owner);
    if let Some(body) = body {
        write_message(tx, REMOVE, thread, indexed, &owner, &body)?;
        tx.execute(SET_INDEXED, (indexed - 1, thread))?;
    } else if title.is_some() {
        write_title(tx, REMOVE, thread, &owner, title.as_deref())?;
        tx.execute(SET_INDEXED_TITLE, (None::<String>, thread))?;
    } else {
        return Ok(false);
    }
    Ok(true)
}

fn write_title(tx: &Tx<'_>, sql: &str, thread: i64, owner: &str, title: Option<&str>) -> StoreResult<()> {
    match title {
        Some(title) => write(tx, sql, thread << MESSAGE_BITS, owner, title),
        None => Ok(()),
    }
}

fn write_message(tx: &Tx<'_>, sql: &str, thread: i64, number: i64, owner: &str, body: &str) -> StoreResult<()> {
    let text = from_json::<Message>(body).ok().and_then(|message| searched_text(&message));
    match text.filter(|_| number <= MAX_INDEXED_MESSAGE) {
        Some(text) => write(tx, sql, thread << MESSAGE_BITS | number, owner, &text),
        None => Ok(()),
    }
}

fn write(tx: &Tx<'_>, sql: &str, row: i64, owner: &str, text: &str) -> StoreResult<()> {
    let words = separated(text);
    if !words.is_empty() {
        tx.execute(sql, (row, owner, words))?;
    }
    Ok(())
}

/// Returns the expression that finds rows of an owner with all terms; `None` if no term has a word.
pub(super) fn expression(owner: &str, terms: &[String]) -> Option<String> {
    let mut expression = format!("owner : \"{}\"", owner_word(owner));
    let mut has_words = false;
    for term in terms {
        let words = separated(term);
        let Some(last) = words.rsplit(' ').next().filter(|last| !last.is_empty()) else { continue };
        expression += &format!(" AND words : \"{words}\"{}", if is_completed(last) { " *" } else { "" });
        has_words = true;
    }
    has_words.then_some(expression)
}

/// Returns an owner as one word.
pub(super) fn owner_word(owner: &str) -> String {
    owner.bytes().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_is_a_list_of_phrases_whose_last_words_are_completed() {
        let of = |terms: &[&str]| expression("a", &terms.iter().map(|term| (*term).to_owned()).collect::<Vec<_>>());
        assert_eq!(of(&["weath"]).unwrap(), "owner : \"61\" AND words : \"weath\" *");
        assert_eq!(of(&["北京", "to"]).unwrap(), "owner : \"61\" AND words : \"北 京\" AND words : \"to\"");
        assert_eq!(of(&["a\"b:word*"]).unwrap(), "owner : \"61\" AND words : \"a b word\" *");
        assert_eq!(of(&["\"", "*"]), None);
        assert_eq!(of(&[]), None);
    }
}
