//! What can go wrong with a database: which of it may pass, and what to tell who starts the server.

use std::{
    io,
    path::{Path, PathBuf},
};

use crate::store::StoreError;

/// Why the database could not be opened. The message is meant for who runs the server: it names the place and
/// the cause, and never a password.
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
    /// There is something else in the file, or it is damaged.
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
    /// The URL does not say where a Postgres is.
    #[error("the URL of Postgres cannot be used: {why}")]
    Url {
        /// What is wrong with it.
        why: String,
    },
    /// Nobody answers there, or not in time.
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
    /// A newer agui-server has been here.
    #[error(
        "the database {place} has the tables of a newer agui-server (version {found}, this one knows {known}): \
         run the newer one, or restore the backup from before"
    )]
    Newer {
        /// The file, or host, port and database.
        place: String,
        /// The version of the tables.
        found: i64,
        /// The highest version this server knows.
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

    /// Why a file could not be opened.
    pub(super) fn sqlite(path: &Path, error: &sqlx::Error) -> Self {
        let (path, why) = (path.to_owned(), plain(error));
        match primary_code(error) {
            Some(11 | 26) => Self::Corrupt { path, why },
            Some(5 | 6) => Self::InUse { path },
            _ => Self::File { path, why },
        }
    }

    /// Why a connection to Postgres could not be opened.
    pub(super) fn postgres(place: &str, error: &sqlx::Error) -> Self {
        let (place, why) = (place.to_owned(), plain(error));
        match error {
            sqlx::Error::Configuration(_) => Self::Url { why },
            sqlx::Error::Database(database) if database.code().as_deref().is_some_and(refuses) => {
                Self::Refused { place, why }
            }
            _ => Self::Unreachable { place, why },
        }
    }
}

/// What the database says, without the library's words around it.
pub(super) fn plain(error: &sqlx::Error) -> String {
    match error {
        sqlx::Error::Database(error) => error.message().to_owned(),
        sqlx::Error::Io(error) => error.to_string(),
        sqlx::Error::Configuration(error) | sqlx::Error::Tls(error) => error.to_string(),
        sqlx::Error::PoolTimedOut => "no connection in time".to_owned(),
        other => other.to_string(),
    }
}

/// What went wrong within an operation.
#[derive(Debug)]
pub(super) enum Fault {
    Lost,
    Sql(sqlx::Error),
    /// It took too long.
    Silent,
    /// What is stored, or should be, makes no sense.
    Nonsense(Box<dyn std::error::Error + Send + Sync>),
}

impl Fault {
    pub(super) fn unreadable(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Nonsense(error.into())
    }
}

impl From<sqlx::Error> for Fault {
    fn from(error: sqlx::Error) -> Self {
        Self::Sql(error)
    }
}

impl From<Fault> for StoreError {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Lost => Self::LeaseLost,
            Fault::Sql(error) if may_pass(&error) => Self::Unavailable(Box::new(error)),
            Fault::Sql(error) => Self::Failed(Box::new(error)),
            Fault::Silent => Self::Unavailable(Box::new(io::Error::from(io::ErrorKind::TimedOut))),
            Fault::Nonsense(error) => Self::Failed(error),
        }
    }
}

/// Whether the same may succeed later: the database is away, busy, full or shutting down.
fn may_pass(error: &sqlx::Error) -> bool {
    use sqlx::Error as E;
    match error {
        // `Protocol` is an answer cut short; `Io` and `Tls` are connections that broke.
        E::Io(_) | E::Tls(_) | E::Protocol(_) | E::PoolTimedOut | E::PoolClosed | E::WorkerCrashed | E::BeginFailed => {
            true
        }
        E::Database(database) => match (database.code().as_deref(), primary_code(error)) {
            (Some(state), None) => postgres_may_pass(state),
            (_, Some(code)) => sqlite_may_pass(code),
            (None, None) => false,
        },
        _ => false,
    }
}

/// SQLite's error, less its details. Its codes are numbers below 10000; those of Postgres have five characters.
fn primary_code(error: &sqlx::Error) -> Option<u32> {
    let sqlx::Error::Database(error) = error else { return None };
    let code = error.code().filter(|code| code.len() < 5)?;
    code.parse::<u32>().ok().map(|code| code & 0xff)
}

/// Busy, locked, out of memory, read-only for now, interrupted, an error of the disk, full, cannot be opened,
/// locks in confusion, the schema changed. What is left is corruption, a broken constraint, or a fault of ours.
fn sqlite_may_pass(code: u32) -> bool {
    matches!(code, 5..=10 | 13..=15 | 17)
}

/// No such role or wrong password, no such database, no privilege.
fn refuses(state: &str) -> bool {
    matches!(state.get(..2), Some("28" | "3D" | "42"))
}

/// By class: the connection, who connects, serialization and deadlocks, resources, an operator, the system.
fn postgres_may_pass(state: &str) -> bool {
    matches!(state.get(..2), Some("08" | "28" | "3D" | "40" | "53" | "57" | "58"))
        // A lock that was not to be had, time limits, a server that became a standby.
        || matches!(state, "55P03" | "25P03" | "25P04" | "25006")
}
