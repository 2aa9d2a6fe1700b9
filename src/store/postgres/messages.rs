//! Reads pages of a thread's messages.

use std::collections::BTreeMap;

use super::{Database, reader::BEGIN_SNAPSHOT};
use crate::store::{MessagePage, MessageQuery, StoreError, rows};

/// Goes from the message `$2` to its parent, to the parent of that one, and so on.
const BRANCH: &str = "
    WITH RECURSIVE branch (number, parent, run, body, feedback, depth) AS (
        SELECT number, parent, run, body, feedback, 1::bigint FROM agui_messages WHERE thread = $1 AND number = $2
        UNION ALL
        SELECT m.number, m.parent, m.run, m.body, m.feedback, branch.depth + 1
        FROM branch JOIN agui_messages AS m ON m.thread = $1 AND m.number = branch.parent WHERE branch.depth < $3)
    SELECT b.number, b.parent, b.run, COALESCE(r.delivered, TRUE) AS delivered, b.body, b.feedback
    FROM branch AS b
    LEFT JOIN agui_runs AS r ON r.number = b.run ORDER BY b.number DESC";

const OF_RUN: &str = "
    SELECT m.number, m.parent, m.run, r.delivered, m.body, m.feedback FROM agui_messages AS m JOIN agui_runs AS r ON r.number = m.run
    WHERE m.thread = $1 AND m.run = $4 AND m.number <= $2 ORDER BY m.number DESC LIMIT $3";

/// The children of the messages in the list `$2`. The first condition selects those that begin a branch, by their index.
const SIBLINGS: &str = "
    SELECT number, parent, id FROM agui_messages
    WHERE thread = $1 AND parent <> number - 1 AND parent = ANY($2::bigint[])
    UNION ALL
    SELECT m.number, m.parent, m.id FROM unnest($2::bigint[]) AS p (number)
    JOIN agui_messages AS m ON m.thread = $1 AND m.number = p.number + 1 AND m.parent = p.number
    ORDER BY number DESC LIMIT $3";

impl Database {
    pub(super) async fn messages(&self, thread: i64, query: MessageQuery) -> Result<MessagePage, StoreError> {
        let limit = i64::try_from(query.limit).unwrap_or(i64::MAX - 1);
        let select = match query.run {
            None => sqlx::query(BRANCH).bind(thread).bind(query.newest).bind(limit),
            // One more, which shows whether there is a page before this one.
            Some(run) => sqlx::query(OF_RUN).bind(thread).bind(query.newest).bind(limit + 1).bind(run),
        };
        let mut operation = self.operation().await?;
        operation.begin(BEGIN_SNAPSHOT).await?;
        let mut feedback = BTreeMap::new();
        let nodes = operation.all(select).await?;
        let nodes = nodes.iter().map(|row| rows::node_with_feedback(row, &mut feedback)).collect::<Result<_, _>>()?;
        let mut page = MessagePage::new(nodes, query);
        page.feedback = feedback;
        let parents: Vec<_> = page.nodes.iter().map(|node| node.parent).collect();
        let select = sqlx::query(SIBLINGS).bind(thread).bind(parents);
        let siblings = operation.all(select.bind(MessagePage::MAX_SIBLINGS.cast_signed() as i64)).await?;
        operation.commit().await?;
        page.set_siblings(siblings.iter().map(rows::sibling).collect::<Result<_, _>>()?);
        Ok(page)
    }
}
