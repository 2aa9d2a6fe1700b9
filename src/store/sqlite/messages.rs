//! Reads pages of a thread's messages.

use std::collections::BTreeMap;

use rusqlite::{Connection, Row, params};

use super::reader::all;
use crate::store::{MessagePage, MessageQuery, StoreError, rows, text::to_json};

/// Goes from the message `?2` to its parent, to the parent of that one, and so on.
const BRANCH: &str = "
    WITH RECURSIVE branch (number, parent, run, body, feedback, depth) AS (
        SELECT number, parent, run, body, feedback, 1 FROM agui_messages WHERE thread = ?1 AND number = ?2
        UNION ALL
        SELECT m.number, m.parent, m.run, m.body, m.feedback, branch.depth + 1
        FROM branch JOIN agui_messages AS m ON m.thread = ?1 AND m.number = branch.parent WHERE branch.depth < ?3)
    SELECT b.number, b.parent, b.run, COALESCE(r.delivered, 1) AS delivered, b.body, b.feedback
    FROM branch AS b
    LEFT JOIN agui_runs AS r ON r.number = b.run ORDER BY b.number DESC";

const OF_RUN: &str = "
    SELECT m.number, m.parent, m.run, r.delivered, m.body, m.feedback FROM agui_messages AS m JOIN agui_runs AS r ON r.number = m.run
    WHERE m.thread = ?1 AND m.run = ?4 AND m.number <= ?2 ORDER BY m.number DESC LIMIT ?3";

/// The children of the messages in the list `?2`. The first condition selects those that begin a branch, by their index.
const SIBLINGS: &str = "
    SELECT number, parent, id FROM agui_messages
    WHERE thread = ?1 AND parent <> number - 1 AND parent IN (SELECT value FROM json_each(?2))
    UNION ALL
    SELECT number, parent, id FROM agui_messages
    WHERE thread = ?1 AND parent = number - 1 AND number IN (SELECT value + 1 FROM json_each(?2))
    ORDER BY number DESC LIMIT ?3";

pub(super) fn messages(conn: &Connection, thread: i64, query: MessageQuery) -> Result<MessagePage, StoreError> {
    let tx = conn.unchecked_transaction()?;
    let limit = query.limit as i64;
    let mut feedback = BTreeMap::new();
    let read = |row: &Row<'_>| rows::node_with_feedback(row, &mut feedback);
    let newest_first = match query.run {
        None => all(&tx, BRANCH, params![thread, query.newest, limit], read)?,
        // One more, which shows whether there is a page before this one.
        Some(run) => all(&tx, OF_RUN, params![thread, query.newest, limit + 1, run], read)?,
    };
    let mut page = MessagePage::new(newest_first, query);
    page.feedback = feedback;
    let parents: Vec<_> = page.nodes.iter().map(|node| node.parent).collect();
    let params = params![thread, to_json(&parents), MessagePage::MAX_SIBLINGS as i64];
    page.set_siblings(all(&tx, SIBLINGS, params, |row| rows::sibling(row))?);
    Ok(page)
}
