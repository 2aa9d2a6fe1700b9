//! Opens a file: creates it if needed, locks out other processes, and creates or checks its tables.

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    path::{Path, PathBuf},
};

use rusqlite::{Connection, OptionalExtension as _};

use super::{
    connection::connect,
    error::open_error,
    writer::{Numbers, Writer},
};
use crate::store::OpenError;

const SCHEMA_VERSION: i64 = 1;

const SCHEMA: &str = include_str!("schema.sql");

/// Settings of the writer's connection. Deleted text is overwritten, freed pages can be returned to the file system, and
/// the write-ahead log is copied into the file after 8,000 pages (32 MB).
const WRITER_SETTINGS: &str = "
    PRAGMA auto_vacuum = INCREMENTAL;
    PRAGMA journal_mode = WAL;
    PRAGMA secure_delete = ON;
    PRAGMA wal_autocheckpoint = 8000;
    PRAGMA journal_size_limit = 67108864;";

const HAS_TABLES: &str = "SELECT 1 FROM sqlite_schema WHERE name = 'agui_schema'";
const VERSION: &str = "SELECT MAX(version) FROM agui_schema";
const NUMBERS: &str = "
    SELECT 1 + COALESCE((SELECT MAX(number) FROM agui_threads), 0), 1 + COALESCE((SELECT MAX(number) FROM agui_runs), 0)";

pub(super) fn open(path: &Path) -> Result<(Writer, PathBuf), OpenError> {
    let path = create_file(path)?;
    let lock = lock(&path)?;
    let to_error = |error| open_error(&path, &error);
    let conn = connect(&path).map_err(to_error)?;
    conn.execute_batch(WRITER_SETTINGS).map_err(to_error)?;
    create_or_check_tables(&conn, &path)?;
    let numbers = conn.query_row(NUMBERS, [], |row| Ok(Numbers { next_thread: row.get(0)?, next_run: row.get(1)? }));
    let writer = Writer::start(conn, numbers.map_err(to_error)?, lock).map_err(|error| file_error(&path, error))?;
    Ok((writer, path))
}

fn create_or_check_tables(conn: &Connection, path: &Path) -> Result<(), OpenError> {
    let place = || path.display().to_string();
    let to_error = |error: rusqlite::Error| match open_error(path, &error) {
        OpenError::File { why, .. } => OpenError::Tables { place: place(), why },
        other => other,
    };
    if conn.query_row(HAS_TABLES, [], |_| Ok(())).optional().map_err(to_error)?.is_none() {
        let made = conn.execute_batch(&format!("BEGIN IMMEDIATE;\n{SCHEMA}\nCOMMIT;"));
        return made.map_err(to_error);
    }
    match conn.query_row(VERSION, [], |row| row.get(0)).map_err(to_error)? {
        SCHEMA_VERSION => Ok(()),
        found => Err(OpenError::Version { place: place(), found, known: SCHEMA_VERSION }),
    }
}

/// Creates the folder and an empty file that only this user can read, unless they exist. Returns the canonical path.
fn create_file(path: &Path) -> Result<PathBuf, OpenError> {
    let to_error = |error| file_error(path, error);
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        fs::create_dir_all(folder).map_err(to_error)?;
    }
    private_file_options().read(true).append(true).open(path).map_err(to_error)?;
    fs::canonicalize(path).map_err(to_error)
}

/// Takes the lock that keeps other processes out. It is released when the file handle is dropped.
fn lock(path: &Path) -> Result<File, OpenError> {
    let mut name = path.as_os_str().to_owned();
    name.push(".lock");
    let to_error = |error| file_error(path, error);
    let file = private_file_options().write(true).open(name).map_err(to_error)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(OpenError::InUse { path: path.to_owned() }),
        Err(TryLockError::Error(error)) => Err(to_error(error)),
    }
}

fn private_file_options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// An error about the file of the database.
pub(super) fn file_error(path: &Path, why: impl ToString) -> OpenError {
    OpenError::File { path: path.to_owned(), why: why.to_string() }
}
