//! Why a database cannot be opened.

use std::path::{Path, PathBuf};

/// Why a database cannot be opened. The messages are for the operator: they name the place and the cause, and never a
/// password.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The folder or the file cannot be made or written.
    #[error("the database {} cannot be used: {why}", path.display())]
    File {
        /// The database.
        path: PathBuf,
        /// What the system says.
        why: String,
    },
    /// The file is damaged or not a database.
    #[error(
        "{} is not a database, or is damaged ({why}): look with sqlite3 and `PRAGMA quick_check`, or move it away",
        path.display()
    )]
    Corrupt {
        /// The database.
        path: PathBuf,
        /// What SQLite says.
        why: String,
    },
    /// A file belongs to one process at a time.
    #[error("the database {} is in use by another agui-server; several can share a Postgres", path.display())]
    InUse {
        /// The database.
        path: PathBuf,
    },
    /// The URL does not name a Postgres.
    #[error("the URL of Postgres cannot be used: {why}")]
    Url {
        /// What is wrong with it.
        why: String,
    },
    /// There is no answer at that place, or not in time.
    #[error("Postgres at {place} cannot be reached: {why}")]
    Unreachable {
        /// Host, port and database.
        place: String,
        /// What the system says.
        why: String,
    },
    /// Postgres answers, but does not let this server in.
    #[error("Postgres at {place} refuses: {why}")]
    Refused {
        /// Host, port and database.
        place: String,
        /// What Postgres says.
        why: String,
    },
    /// The database has the tables of another version of this server.
    #[error(
        "the database {place} has tables of version {found}, and this agui-server needs version {known}: \
         use another database, or the agui-server that made it"
    )]
    Version {
        /// The file, or host, port and database.
        place: String,
        /// The version of the tables.
        found: i64,
        /// The version that this server needs.
        known: i64,
    },
    /// The tables cannot be made or read.
    #[error("the tables in the database {place} cannot be set up: {why}")]
    Tables {
        /// The file, or host, port and database.
        place: String,
        /// What the database says.
        why: String,
    },
}

impl OpenError {
    pub(super) fn file(path: &Path, why: impl ToString) -> Self {
        Self::File { path: path.to_owned(), why: why.to_string() }
    }
}
