//! Opens a file: makes it, keeps other processes out, and makes or checks its tables.

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

/// The version of the tables in `schema.sql`.
const SCHEMA_VERSION: i64 = 1;

const SCHEMA: &str = include_str!("schema.sql");

/// Settings of the connection that writes. Deleted text is overwritten, and freed pages can be given back; the log is
/// copied into the file after 8,000 pages (32 MB).
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

/// Opens a file for writing. Returns its one name, whatever links lead to it.
pub(super) fn open(path: &Path) -> Result<(Writer, PathBuf), OpenError> {
    let path = make_file(path)?;
    let lock = lock(&path)?;
    let because = |error| open_error(&path, &error);
    let conn = connect(&path).map_err(because)?;
    conn.execute_batch(WRITER_SETTINGS).map_err(because)?;
    make_tables(&conn, &path)?;
    let numbers = conn.query_row(NUMBERS, [], |row| Ok(Numbers { next_thread: row.get(0)?, next_run: row.get(1)? }));
    let writer = Writer::start(conn, numbers.map_err(because)?, lock).map_err(|error| OpenError::file(&path, error))?;
    Ok((writer, path))
}

fn make_tables(conn: &Connection, path: &Path) -> Result<(), OpenError> {
    let place = || path.display().to_string();
    let because = |error: rusqlite::Error| match open_error(path, &error) {
        OpenError::File { why, .. } => OpenError::Tables { place: place(), why },
        other => other,
    };
    if conn.query_row(HAS_TABLES, [], |_| Ok(())).optional().map_err(because)?.is_none() {
        let made = conn.execute_batch(&format!("BEGIN IMMEDIATE;\n{SCHEMA}\nCOMMIT;"));
        return made.map_err(because);
    }
    match conn.query_row(VERSION, [], |row| row.get(0)).map_err(because)? {
        SCHEMA_VERSION => Ok(()),
        found => Err(OpenError::Version { place: place(), found, known: SCHEMA_VERSION }),
    }
}

/// Makes the folder and an empty file that only this user may read: it holds conversations. Returns the one name of the
/// file, whatever links lead to it.
fn make_file(path: &Path) -> Result<PathBuf, OpenError> {
    let because = |error| OpenError::file(path, error);
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        fs::create_dir_all(folder).map_err(because)?;
    }
    private().read(true).append(true).open(path).map_err(because)?;
    fs::canonicalize(path).map_err(because)
}

/// Takes the lock that keeps a second process out. It ends with the file handle.
fn lock(path: &Path) -> Result<File, OpenError> {
    let mut name = path.as_os_str().to_owned();
    name.push(".lock");
    let because = |error| OpenError::file(path, error);
    let file = private().write(true).open(name).map_err(because)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(OpenError::InUse { path: path.to_owned() }),
        Err(TryLockError::Error(error)) => Err(because(error)),
    }
}

/// Options for files that are made for this user alone.
fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}
