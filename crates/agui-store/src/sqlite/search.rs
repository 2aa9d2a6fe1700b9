//! The search index: a search first indexes what its owner has written since the last search, so
//! that runs do not pay for it.
//!
//! Each word begins with [`owner_word`]. So the index has the words of an owner side by side, and a
//! search reads only these. A row of `agui_words` has the words of a title or a message. The table
//! holds no text, so a row is removed by naming the words of the stored message. So a message is
//! removed from the index before it is updated or deleted. `secure-delete` removes the words from
//! the file at once.
//!
//! Measured on one core with 100,000 threads of 4 messages each: a search takes 1 to 20 ms, where
//! LIKE takes 500 ms; a search that also selects by archive or agent, and excludes all 400,000
//! matches, takes 170 ms. A row costs 40 µs if many are written together.

use std::time::Instant;

use rusqlite::{Connection, named_params};
use sha2::{Digest as _, Sha256};

use super::{
    reader::{all, one},
    writer::{STEP_TIME, Tx, for_one_step},
};
use crate::{
    MessageNumber, RunNumber, StoreError, StoreResult, Thread, ThreadNumber, ThreadPage, rows,
    search::{folded, searched_text, terms},
    text::{name_to_text, parse_json},
    words::{indexed, is_completed, separated},
};
use agui_base::text::hex;
use agui_protocol::Message;

/// The row ids of a thread are `number << MESSAGE_BITS` for the title, and the following ones for its messages.
const MESSAGE_BITS: u32 = 24;
const MAX_INDEXED_MESSAGE: i64 = (1 << MESSAGE_BITS) - 1;
/// The number of matching threads from which a page is made, the last created ones.
const MAX_MATCHING_THREADS: i64 = 5000;

const NEXT_THREAD: &str = "
    SELECT number, indexed, title, indexed_title FROM agui_threads
    WHERE owner = ? AND (indexed < messages OR title IS NOT indexed_title) LIMIT 1";
const NEXT_MESSAGES: &str =
    "SELECT number, body FROM agui_messages WHERE thread = ? AND number > ? ORDER BY number";
pub(super) const ADD: &str = "INSERT INTO agui_words (rowid, words) VALUES (?, ?)";
pub(super) const REMOVE: &str =
    "INSERT INTO agui_words (agui_words, rowid, words) VALUES ('delete', ?, ?)";
const SET_INDEXED: &str = "UPDATE agui_threads SET indexed = ? WHERE number = ?";
const SET_INDEXED_TITLE: &str = "UPDATE agui_threads SET indexed_title = title WHERE number = ?";
const SET_ALL_INDEXED: &str = "UPDATE agui_threads SET indexed = messages WHERE number = ?";
const CLEAR_INDEXED: &str =
    "UPDATE agui_threads SET indexed = 0, indexed_title = NULL WHERE number = ?";
const RESET: [&str; 2] = [
    "INSERT INTO agui_words (agui_words) VALUES ('delete-all')",
    "UPDATE agui_threads SET indexed = 0, indexed_title = NULL",
];

/// Makes the index of all threads again, when they are searched. The words are in their form already, so FTS5 has only to separate
/// them.
pub(super) const MAKE_INDEX: &str = "
    DROP TABLE IF EXISTS agui_words;
    CREATE VIRTUAL TABLE agui_words USING fts5 (words, content = '', tokenize = 'ascii');
    INSERT INTO agui_words (agui_words, rank) VALUES ('secure-delete', 1);
    UPDATE agui_threads SET indexed = 0, indexed_title = NULL;";

const FIND: &str = include_str!("sql/search.sql");

/// A deleted thread, with the last message that is indexed.
const DELETED_THREAD: &str = "
    SELECT t.former_owner, m.number, t.indexed, t.indexed_title, m.body FROM agui_threads AS t
    LEFT JOIN agui_messages AS m ON m.thread = t.number AND m.number = (
        SELECT MAX(number) FROM agui_messages WHERE thread = ?1 AND number <= t.indexed)
    WHERE t.number = ?1";

const INDEXED_MESSAGE: &str = "
    SELECT t.owner, m.body FROM agui_threads AS t JOIN agui_messages AS m ON m.thread = t.number AND m.number = ?2
    WHERE t.number = ?1 AND t.indexed >= ?2";

/// Returns `None` if something has to be indexed first.
pub(super) fn find(
    conn: &Connection,
    owner: &str,
    page: &ThreadPage,
) -> StoreResult<Option<Vec<Thread>>> {
    if conn.prepare_cached(NEXT_THREAD)?.exists([owner])? {
        return Ok(None);
    }
    let terms = terms(page.query.as_deref().unwrap_or_default());
    let Some(expression) = expression(owner, &terms) else { return Ok(Some(Vec::new())) };
    let (after, agent) =
        (page.after.unwrap_or(RunNumber(i64::MAX)), page.agent.as_deref().map(name_to_text));
    let params = named_params! {
        ":owner": owner, ":after": after, ":archived": page.archived, ":agent": agent, ":expression": expression,
        ":matching": MAX_MATCHING_THREADS, ":limit": page.limit as i64,
    };
    all(conn, FIND, params, |row| rows::thread(row)).map(Some)
}

/// Runs a step of indexing. If a damaged row makes the step fail, the index is emptied and the step
/// runs again, because the words of a damaged row cannot be named and must not stay in the file.
/// Searches fill the index again.
fn mended<T>(tx: &Tx<'_>, step: impl Fn() -> StoreResult<T>) -> StoreResult<T> {
    match step() {
        Err(StoreError::Failed(error)) => {
            tracing::error!(
                ?error,
                "a damaged row is in the search index, which is emptied: searches fill it again"
            );
            RESET.iter().try_for_each(|sql| tx.execute(sql, []).map(drop))?;
            step()
        }
        done => done,
    }
}

/// Indexes an owner's messages, for the time of a step, and at least one. Returns whether there may
/// be more.
pub(super) fn index_step(tx: &Tx<'_>, owner: &str) -> StoreResult<bool> {
    let word = owner_word(owner);
    for_one_step(|begin| mended(tx, || index_some(tx, owner, &word, begin)))
}

/// Indexes messages of one thread. Returns whether there was one.
fn index_some(tx: &Tx<'_>, owner: &str, word: &str, begin: Instant) -> StoreResult<bool> {
    let pending = one(tx.conn, NEXT_THREAD, [owner], |row| {
        // A damaged title is not indexed.
        let title = rows::optional_text(row, "title")?.map(str::to_owned);
        let indexed_title: Option<String> = row.get("indexed_title")?;
        Ok((row.get::<_, ThreadNumber>("number")?, row.get("indexed")?, title, indexed_title))
    })?;
    let Some((number, mut indexed, title, indexed_title)) = pending else { return Ok(false) };
    if title != indexed_title {
        write_title(tx, REMOVE, number, word, indexed_title.as_deref())?;
        write_title(tx, ADD, number, word, title.as_deref())?;
    }
    tx.execute(SET_INDEXED_TITLE, [number])?;
    let mut select = tx.conn.prepare_cached(NEXT_MESSAGES)?;
    let mut messages = select.query((number, indexed))?;
    while let Some(message) = messages.next()? {
        indexed = message.get("number")?;
        write_message(tx, ADD, number, indexed, word, rows::text(message, "body")?)?;
        if begin.elapsed() >= STEP_TIME {
            tx.execute(SET_INDEXED, (indexed, number))?;
            return Ok(true);
        }
    }
    // The stored number of messages, even if fewer exist.
    tx.execute(SET_ALL_INDEXED, [number])?;
    Ok(true)
}

/// Removes a message from the index before it is changed, or adds it again. Returns whether it was indexed.
pub(super) fn write_indexed(
    tx: &Tx<'_>,
    sql: &str,
    thread: ThreadNumber,
    number: MessageNumber,
) -> StoreResult<bool> {
    mended(tx, || {
        let found: Option<(String, String)> =
            one(tx.conn, INDEXED_MESSAGE, (thread, number), |row| Ok(row.try_into()?))?;
        let Some((owner, body)) = found else { return Ok(false) };
        write_message(tx, sql, thread, number, &owner_word(&owner), &body)?;
        Ok(true)
    })
}

/// Removes one row of a deleted thread from the index. Returns whether there was one.
pub(super) fn remove_one(tx: &Tx<'_>, thread: ThreadNumber) -> StoreResult<bool> {
    mended(tx, || {
        let removed = one(tx.conn, DELETED_THREAD, [thread], |row| {
            let (indexed, title): (MessageNumber, Option<String>) =
                (row.get("indexed")?, row.get("indexed_title")?);
            if indexed == MessageNumber::ROOT && title.is_none() {
                return Ok(false);
            }
            let owner = owner_word(&row.get::<_, String>("former_owner")?);
            match row.get::<_, Option<MessageNumber>>("number")? {
                Some(number) => {
                    write_message(
                        tx,
                        REMOVE,
                        thread,
                        number,
                        &owner,
                        &row.get::<_, String>("body")?,
                    )?;
                    tx.execute(SET_INDEXED, (number.0 - 1, thread))?;
                }
                None => {
                    write_title(tx, REMOVE, thread, &owner, title.as_deref())?;
                    tx.execute(CLEAR_INDEXED, [thread])?;
                }
            }
            Ok(true)
        });
        Ok(removed?.unwrap_or_default())
    })
}

fn write_title(
    tx: &Tx<'_>,
    sql: &str,
    thread: ThreadNumber,
    owner: &str,
    title: Option<&str>,
) -> StoreResult<()> {
    title.map_or(Ok(()), |title| write(tx, sql, thread.0 << MESSAGE_BITS, owner, &folded(title)))
}

fn write_message(
    tx: &Tx<'_>,
    sql: &str,
    thread: ThreadNumber,
    number: MessageNumber,
    owner: &str,
    body: &str,
) -> StoreResult<()> {
    let text = match parse_json::<Message>(body) {
        Ok(message) => searched_text(&message),
        // The row was not added, or was damaged later.
        Err(problem) if sql == REMOVE => return Err(StoreError::Failed(problem.into())),
        Err(_) => None,
    };
    let text = text.filter(|_| (1..=MAX_INDEXED_MESSAGE).contains(&number.0));
    text.map_or(Ok(()), |text| write(tx, sql, thread.0 << MESSAGE_BITS | number.0, owner, &text))
}

fn write(tx: &Tx<'_>, sql: &str, row: i64, owner: &str, text: &str) -> StoreResult<()> {
    let words = with_owner(owner, &indexed(text));
    if !words.is_empty() {
        tx.execute(sql, (row, words))?;
    }
    Ok(())
}

/// Returns the expression that finds rows of an owner with all terms, or `None` if no term has a
/// word. The last word of the last term may be the beginning of a word.
pub(super) fn expression(owner: &str, terms: &[String]) -> Option<String> {
    let (owner, last_term) = (owner_word(owner), terms.len().saturating_sub(1));
    let phrase = |(at, term): (usize, &String)| {
        let words = separated(term);
        let last = words.rsplit(' ').next().filter(|last| !last.is_empty())?;
        let prefix = if at == last_term && is_completed(last) { " *" } else { "" };
        Some(format!("\"{}\"{prefix}", with_owner(&owner, &words)))
    };
    let phrases: Vec<_> = terms.iter().enumerate().filter_map(phrase).collect();
    (!phrases.is_empty()).then(|| phrases.join(" AND "))
}

/// Returns separated words in the form that the index has for an owner.
fn with_owner(owner: &str, words: &str) -> String {
    let words = words.split(' ').filter(|word| !word.is_empty());
    words.map(|word| format!("{owner}{word}")).collect::<Vec<_>>().join(" ")
}

/// Returns the beginning of each word of an owner. It has few characters, because each word has
/// them. Two owners can share a beginning, so searches select by owner as well.
fn owner_word(owner: &str) -> String {
    hex(&Sha256::digest(owner)[..3])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_is_a_list_of_phrases_whose_last_word_is_completed() {
        let of = |terms: &[&str]| {
            expression("a", &terms.iter().map(|term| (*term).to_owned()).collect::<Vec<_>>())
        };
        assert_eq!(of(&["weath"]).unwrap(), "\"ca9781weath\" *");
        assert_eq!(of(&["weath", "to"]).unwrap(), "\"ca9781weath\" AND \"ca9781to\"");
        assert_eq!(of(&["to", "北京"]).unwrap(), "\"ca9781to\" AND \"ca9781北 ca9781京\"");
        assert_eq!(of(&["a\"b:word*"]).unwrap(), "\"ca9781a ca9781b ca9781word\" *");
        assert_eq!(of(&["\"", "*"]), None);
        assert_eq!(of(&[]), None);
    }
}
