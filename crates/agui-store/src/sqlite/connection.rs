//! Opens connections to the file.

use std::path::Path;

use rusqlite::Connection;

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
    conn.execute_batch(SETTINGS)?;
    Ok(conn)
}
