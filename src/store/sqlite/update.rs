//! Changes a thread by its owner.

use rusqlite::params;

use super::writer::Tx;
use crate::store::{StoreError, ThreadVersion, text::UpdateColumns};

/// `?8` is the new head, or NULL.
const UPDATE: &str = "
    UPDATE agui_threads SET version = version + 1,
        title = CASE WHEN ?3 THEN ?4 ELSE title END,
        archived = COALESCE(?5, archived),
        metadata = CASE WHEN ?6 THEN ?7 ELSE metadata END,
        head = COALESCE(?8, head),
        state = CASE WHEN ?8 IS NULL THEN state ELSE ?9 END,
        interrupts = CASE WHEN ?8 IS NULL THEN interrupts ELSE ?10 END
    WHERE number = ?1 AND version = ?2 AND (?8 IS NULL OR holder IS NULL)";

const SET_FEEDBACK: &str = "
    UPDATE agui_messages SET feedback = ?3 WHERE thread = ?1
        AND number = (SELECT MAX(number) FROM agui_messages WHERE thread = ?1 AND id = ?2)";

pub(super) fn set_feedback(
    tx: &mut Tx<'_>,
    thread: i64,
    message: &str,
    feedback: Option<&str>,
) -> Result<bool, StoreError> {
    Ok(tx.conn.prepare_cached(SET_FEEDBACK)?.execute(params![thread, message, feedback])? > 0)
}

pub(super) fn update(tx: &mut Tx<'_>, expected: ThreadVersion, new: &UpdateColumns) -> Result<bool, StoreError> {
    let changed = tx.conn.prepare_cached(UPDATE)?.execute(params![
        expected.number,
        expected.version,
        new.sets_title,
        new.title,
        new.archived,
        new.sets_metadata,
        new.metadata,
        new.head,
        new.state,
        new.interrupts
    ])?;
    Ok(changed > 0)
}
