//! Converts errors of Postgres. Errors that a later attempt may not have are transient.

use std::io;

use sqlx::Error;

use crate::{OpenError, StoreError};

impl From<Error> for StoreError {
    fn from(error: Error) -> Self {
        let is_disk_full = error
            .as_database_error()
            .is_some_and(|error| error.code().as_deref() == Some(DISK_FULL));
        if is_disk_full {
            Self::Unavailable(io::Error::new(io::ErrorKind::StorageFull, error).into())
        } else if is_transient(&error) {
            Self::Unavailable(error.into())
        } else {
            Self::Failed(error.into())
        }
    }
}

const DISK_FULL: &str = "53100";

fn is_transient(error: &Error) -> bool {
    match error {
        // `Protocol` means that a response was cut off.
        Error::Io(_)
        | Error::Tls(_)
        | Error::Protocol(_)
        | Error::PoolTimedOut
        | Error::PoolClosed
        | Error::WorkerCrashed
        | Error::BeginFailed => true,
        Error::Database(database) => database.code().is_some_and(|code| is_transient_state(&code)),
        _ => false,
    }
}

/// Returns whether an SQLSTATE is transient. The classes are: connection exception, invalid authorization, invalid catalog
/// name, transaction rollback, insufficient resources, operator intervention, system error. The single codes are timeouts
/// of locks and transactions, and a read-only server.
fn is_transient_state(state: &str) -> bool {
    matches!(state.get(..2), Some("08" | "28" | "3D" | "40" | "53" | "57" | "58"))
        || matches!(state, "55P03" | "25P03" | "25P04" | "25006")
}

/// Returns whether an SQLSTATE means an unknown role, wrong password, unknown database or missing privilege.
fn is_refusal(state: &str) -> bool {
    matches!(state.get(..2), Some("28" | "3D" | "42"))
}

pub(super) fn open_error(place: &str, error: &Error) -> OpenError {
    let (place, why) = (place.to_owned(), message(error));
    match error {
        Error::Configuration(_) => OpenError::Url { why },
        Error::Database(database) if database.code().is_some_and(|code| is_refusal(&code)) => {
            OpenError::Refused { place, why }
        }
        _ => OpenError::Unreachable { place, why },
    }
}

/// Returns the message of the database or the system, without the text that the library adds.
pub(super) fn message(error: &Error) -> String {
    match error {
        Error::Database(error) => error.message().to_owned(),
        Error::Io(error) => error.to_string(),
        Error::Configuration(error) | Error::Tls(error) => error.to_string(),
        other => other.to_string(),
    }
}
