//! The rows of files in transactions of threads: the uses by threads, and the rows of deleted
//! files.

use std::collections::BTreeSet;

use rusqlite::{Connection, named_params};

use super::{
    reader::one,
    writer::{Tx, for_one_step},
};
use crate::{StoreResult, ThreadNumber, files::FileSums, rows};

const SUMS: &str = "SELECT files, bytes FROM agui_file_sums WHERE owner = ?";
const USE: &str = include_str!("sql/use_file.sql");
const MARK_USED: &str = "
    UPDATE agui_files SET unused_since = NULL WHERE id = :id AND unused_since IS NOT NULL
        AND number IN (SELECT file FROM agui_file_uses WHERE thread = :thread)";
/// Both statements name the same rows.
const RELEASE: [&str; 2] = [
    "UPDATE agui_files SET unused_since = CAST(unixepoch('subsec') * 1000 AS INTEGER) WHERE number IN
        (SELECT file FROM agui_file_uses WHERE thread = ?1 ORDER BY file LIMIT ?2)",
    "DELETE FROM agui_file_uses WHERE thread = ?1 AND file IN
        (SELECT file FROM agui_file_uses WHERE thread = ?1 ORDER BY file LIMIT ?2)",
];
const MAX_RELEASED: i64 = 20;

const FIND_UNLINKED: &str = "SELECT number FROM agui_files WHERE owner = '' LIMIT 1";
/// Each statement deletes some rows of a file, the last one the file itself.
const PURGE: [&str; 3] = [
    "DELETE FROM agui_file_chunks WHERE file = ?1 AND number IN
        (SELECT number FROM agui_file_chunks WHERE file = ?1 LIMIT ?2)",
    "DELETE FROM agui_file_uses WHERE file = ?1 AND thread IN
        (SELECT thread FROM agui_file_uses WHERE file = ?1 LIMIT ?2)",
    "DELETE FROM agui_files WHERE number = ?1 AND ?2 > 0",
];
/// Four chunks are one megabyte.
const MAX_PURGED_ROWS: i64 = 4;

/// Returns the sums of an owner's files, or of all files.
pub(super) fn file_sums(conn: &Connection, owner: &str) -> StoreResult<FileSums> {
    Ok(one(conn, SUMS, [owner], |row| rows::file_sums(row))?.unwrap_or_default())
}

/// Notes that the messages of a thread name files of its owner.
pub(super) fn use_files(
    tx: &Tx<'_>,
    thread: ThreadNumber,
    ids: &BTreeSet<String>,
) -> StoreResult<()> {
    for id in ids {
        tx.execute(USE, named_params! { ":thread": thread, ":id": id })?;
        tx.execute(MARK_USED, named_params! { ":thread": thread, ":id": id })?;
    }
    Ok(())
}

/// Notes that a thread which is being purged no longer uses some files. Returns whether it may use more.
pub(super) fn release_some(tx: &Tx<'_>, thread: ThreadNumber) -> StoreResult<bool> {
    let [update, delete] = RELEASE;
    tx.execute(update, (thread, MAX_RELEASED))?;
    Ok(tx.execute(delete, (thread, MAX_RELEASED))? as i64 == MAX_RELEASED)
}

/// Deletes rows of unlinked files for the time of a step. Returns whether there may be more.
pub(super) fn purge_step(tx: &Tx<'_>) -> StoreResult<bool> {
    for_one_step(|_| {
        let Some(file) = one(tx.conn, FIND_UNLINKED, [], |row| Ok(row.get::<_, i64>(0)?))? else {
            return Ok(false);
        };
        for sql in PURGE {
            if tx.execute(sql, [file, MAX_PURGED_ROWS])? as i64 == MAX_PURGED_ROWS {
                break;
            }
        }
        Ok(true)
    })
}
