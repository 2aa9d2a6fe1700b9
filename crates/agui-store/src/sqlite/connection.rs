//! Opens connections to the file.

use std::path::Path;

use rusqlite::{Connection, config::DbConfig};

/// Settings of all connections. A statement waits up to 5 s for a lock of another process, such as a backup.
const SETTINGS: &str = "
    PRAGMA busy_timeout = 5000;
    PRAGMA synchronous = NORMAL;
    PRAGMA foreign_keys = OFF;
    PRAGMA temp_store = MEMORY;
    PRAGMA cache_size = -4000;";

pub(super) fn connect(path: &Path) -> rusqlite::Result<Connection> {
    let conn = Connection::open(path)?;
    conn.set_prepared_statement_cache_capacity(64);
    // Otherwise SQLite plans some statements again for the values that are bound: the one that stores a run took a third of a
    // short request (200,000 of 650,000 instructions).
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    conn.execute_batch(SETTINGS)?;
    Ok(conn)
}
