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

#[cfg(test)]
mod tests {
    use rusqlite::StatementStatus;

    use super::*;

    #[test]
    fn a_statement_is_planned_once_whatever_is_bound() {
        let conn = connect(Path::new(":memory:")).unwrap();
        conn.execute_batch("CREATE TABLE t (a INTEGER PRIMARY KEY); INSERT INTO t VALUES (1), (2)")
            .unwrap();
        let mut select = conn.prepare("SELECT a FROM t ORDER BY a LIMIT ?").unwrap();
        for limit in 1..4 {
            select.query_map([limit], |row| row.get::<_, i64>(0)).unwrap().count();
        }
        assert_eq!(select.get_status(StatementStatus::RePrepare), 0);
    }
}
