//! The rows of files in transactions of threads: the uses by threads, and the deletion of an
//! owner's files.

use std::collections::BTreeSet;

use sqlx::{Row as _, postgres::PgRow};

use super::pool::{Operation, PostgresPool};
use crate::{StoreResult, ThreadNumber, files::FileSums, rows};

const SUMS: &str = "SELECT files, bytes FROM agui_file_sums WHERE owner = $1";
const USE: &str = include_str!("sql/use_files.sql");
const DELETE_ALL: &str = "SELECT number FROM agui_files WHERE owner = $1 LIMIT $2";
const DELETE_FILES: &str = include_str!("sql/delete_files.sql");
pub(super) const MAX_DELETED_FILES: i64 = 50;

/// Returns the sums of an owner's files, or of all files.
pub(super) async fn file_sums(operation: &mut Operation, owner: &str) -> StoreResult<FileSums> {
    sums(operation.first(sqlx::query(SUMS).bind(owner)).await?)
}

pub(super) fn sums(row: Option<PgRow>) -> StoreResult<FileSums> {
    Ok(row.as_ref().map(rows::file_sums).transpose()?.unwrap_or_default())
}

/// Notes that the messages of a thread name files of its owner.
pub(super) async fn use_files(
    operation: &mut Operation,
    thread: ThreadNumber,
    ids: &BTreeSet<String>,
) -> StoreResult<()> {
    if ids.is_empty() {
        return Ok(());
    }
    let ids: Vec<_> = ids.iter().map(String::as_str).collect();
    operation.all(sqlx::query(USE).bind(thread).bind(ids)).await.map(drop)
}

pub(super) async fn delete_all(pool: &PostgresPool, owner: &str) -> StoreResult<()> {
    loop {
        let found = pool.all(sqlx::query(DELETE_ALL).bind(owner).bind(MAX_DELETED_FILES)).await?;
        let numbers =
            found.iter().map(|row| Ok(row.try_get(0)?)).collect::<StoreResult<Vec<i64>>>()?;
        if numbers.is_empty() {
            return Ok(());
        }
        delete_files(pool, &numbers).await?;
    }
}

pub(super) async fn delete_files(pool: &PostgresPool, numbers: &[i64]) -> StoreResult<()> {
    pool.all(sqlx::query(DELETE_FILES).bind(numbers)).await.map(drop)
}
