//! The errors of a store, and of opening a database.

use std::{io, path::PathBuf};

use agui_base::refusals;

refusals! {
    /// An error of a store.
    #[derive(Debug, thiserror::Error)]
    #[non_exhaustive]
    pub enum StoreError {
        /// The caller does not have the thread's lease, or has lost it.
        #[error("the lease of this run was lost")]
        #[refusal(CONFLICT, "lease_lost", Store)]
        LeaseLost,
        /// The store is unreachable, busy or full. The same call may succeed later.
        #[error("the store is not available")]
        #[refusal(SERVICE_UNAVAILABLE, "store_unavailable", Store)]
        Unavailable(#[source] Box<dyn std::error::Error + Send + Sync>),
        /// Stored data is unreadable, or the store rejects the data. The same call will fail again.
        #[error("the store failed")]
        #[refusal(INTERNAL_SERVER_ERROR, "internal_error", Every)]
        Failed(#[source] Box<dyn std::error::Error + Send + Sync>),
    }
}

/// The result of an operation on a store.
pub type StoreResult<T> = Result<T, StoreError>;

impl StoreError {
    /// Returns whether the same call may succeed later.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Unavailable(_))
    }

    /// Returns whether the disk is full: the cause is an [`io::Error`] of this kind.
    #[doc(hidden)]
    pub fn is_disk_full(&self) -> bool {
        let Self::Unavailable(error) = self else { return false };
        error
            .downcast_ref()
            .is_some_and(|error: &io::Error| error.kind() == io::ErrorKind::StorageFull)
    }
}

/// An error of opening a database. The messages name the database and the cause, and never contain a password.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The folder or the file cannot be created or written.
    #[error("the database {} cannot be opened: {why}", path.display())]
    File {
        /// The database.
        path: PathBuf,
        /// The error of the system.
        why: String,
    },
    /// The file is damaged or not a database.
    #[error(
        "{} is not a database, or is damaged ({why}): check it with sqlite3 and `PRAGMA quick_check`, or move it away",
        path.display()
    )]
    Corrupt {
        /// The database.
        path: PathBuf,
        /// The error of SQLite.
        why: String,
    },
    /// Another process has opened the file.
    #[error("the database {} is in use by another agui-server: stop that one, or use Postgres, which several can share", path.display())]
    InUse {
        /// The database.
        path: PathBuf,
    },
    /// The program was built without the store that the URL names.
    #[error("this build has no {store}: build it with the feature `{feature}`")]
    NotBuilt {
        /// The name of the store.
        store: &'static str,
        /// The feature of this crate.
        feature: &'static str,
    },
    /// The URL does not name a Postgres.
    #[error("the URL of Postgres is invalid: {why}")]
    Url {
        /// The error in it.
        why: String,
    },
    /// Postgres does not respond, or not in time.
    #[error("Postgres at {place} cannot be reached: {why}")]
    Unreachable {
        /// Host, port and database.
        place: String,
        /// The error of the system.
        why: String,
    },
    /// Postgres rejects the connection.
    #[error("Postgres at {place} refuses the connection: {why}")]
    Refused {
        /// Host, port and database.
        place: String,
        /// The error of Postgres.
        why: String,
    },
    /// The database has the tables of another version of this server.
    #[error(
        "the database {place} has tables of version {found}, and this agui-server needs version {known}: \
         use another database, or the agui-server that created it"
    )]
    Version {
        /// The file, or host, port and database.
        place: String,
        /// The version of the tables.
        found: i64,
        /// The version that this server needs.
        known: i64,
    },
    /// The tables cannot be created or read.
    #[error("the tables in the database {place} cannot be created or read: {why}")]
    Tables {
        /// The file, or host, port and database.
        place: String,
        /// The error of the database.
        why: String,
    },
}
