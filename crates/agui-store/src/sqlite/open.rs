//! Opens a database: creates it if needed, locks out other processes, and creates or checks its tables.

use std::{fs, path::Path, sync::Arc};

use rusqlite::{Connection, OptionalExtension as _};
use tokio::sync::Mutex;

use super::{
    SqliteStore,
    connection::connect,
    error::open_error,
    files::{DatabaseFiles, file_error},
    reader::Readers,
    reserve::{DiskReserve, disk_space},
    search::MAKE_INDEX,
    writer::{Numbers, SqliteWriter},
};
use crate::{OpenError, search::INDEX_VERSION};
use agui_base::permits::Permits;

const SCHEMA_VERSION: i64 = 4;

const SCHEMA: &str = include_str!("schema.sql");

/// Settings of the writer's connection. Deleted text is overwritten, and freed pages can be returned to the file system. The
/// writer decides when the write-ahead log is copied into the file.
const WRITER_SETTINGS: &str = "
    PRAGMA auto_vacuum = INCREMENTAL;
    PRAGMA journal_mode = WAL;
    PRAGMA secure_delete = ON;
    PRAGMA wal_autocheckpoint = 0;
    PRAGMA journal_size_limit = 67108864;";

const HAS_TABLES: &str = "SELECT 1 FROM sqlite_schema WHERE name = 'agui_schema'";
/// The version of the search index, which is not one of the tables'.
const INDEXED_VERSION: &str = "PRAGMA user_version";
const VERSION: &str = "SELECT MAX(version) FROM agui_schema";
/// Numbers of 2^39 and more are damaged: the search index has no row ids for their threads.
const NUMBERS: &str = "
    SELECT 1 + COALESCE((SELECT MAX(number) FROM agui_threads WHERE number < 549755813888), 0),
        1 + COALESCE((SELECT MAX(number) FROM agui_runs WHERE number < 549755813888), 0)";

impl SqliteStore {
    /// Opens a file, or creates it. The file belongs to this process until the store is dropped.
    ///
    /// # Errors
    /// An [`OpenError`] if the file is in use, damaged, of another version, or cannot be written.
    pub async fn open(path: &Path) -> Result<Self, OpenError> {
        let path = path.to_owned();
        let opened = tokio::task::spawn_blocking(move || open(&path));
        opened.await.unwrap_or_else(|error| Err(file_error(Path::new(""), error)))
    }
}

fn open(path: &Path) -> Result<SqliteStore, OpenError> {
    let files = Arc::new(DatabaseFiles::lock(path)?);
    let path = &files.path;
    let reserve = DiskReserve::new(path);
    let (conn, numbers) = match open_tables(path) {
        // The cause may be a full disk, which SQLite does not report for all its files.
        Err(OpenError::File { .. } | OpenError::Tables { .. }) if reserve.give_up() => {
            open_tables(path)?
        }
        opened => opened?,
    };
    let opened = Arc::new(files.ids().map_err(|error| file_error(path, error))?);
    let stored = fs::metadata(path).map_or(0, |file| file.len());
    let capacity = disk_space(path).map(|space| space.available.saturating_add(stored));
    let writer = SqliteWriter::start(conn, numbers, reserve, files.clone())
        .map_err(|error| file_error(path, error))?;
    let readers = Readers::new(files.clone());
    Ok(SqliteStore {
        writer,
        readers,
        upkeep: Permits::new(1, None),
        truncating: Mutex::default(),
        files,
        opened,
        capacity,
    })
}

fn open_tables(path: &Path) -> Result<(Connection, Numbers), OpenError> {
    let to_error = |error| open_error(path, &error);
    let conn = connect(path).map_err(to_error)?;
    conn.execute_batch(WRITER_SETTINGS).map_err(to_error)?;
    create_or_check_tables(&conn, path)?;
    let indexed: i64 = conn.query_row(INDEXED_VERSION, [], |row| row.get(0)).map_err(to_error)?;
    if indexed != INDEX_VERSION {
        let made = format!(
            "BEGIN IMMEDIATE;\n{MAKE_INDEX}\n{INDEXED_VERSION} = {INDEX_VERSION};\nCOMMIT;"
        );
        conn.execute_batch(&made).map_err(to_error)?;
    }
    let numbers = conn.query_row(NUMBERS, [], |row| {
        Ok(Numbers { next_thread: row.get(0)?, next_run: row.get(1)? })
    });
    let numbers = numbers.map_err(to_error)?;
    Ok((conn, numbers))
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
