//! Converts errors of SQLite. Errors that a later attempt may not have are transient.

use std::path::Path;

use rusqlite::{Error, ErrorCode};

use crate::store::{OpenError, StoreError};

impl From<Error> for StoreError {
    fn from(error: Error) -> Self {
        use ErrorCode as Code;
        match error.sqlite_error_code() {
            Some(
                Code::DatabaseBusy
                | Code::DatabaseLocked
                | Code::OutOfMemory
                | Code::ReadOnly
                | Code::OperationInterrupted
                | Code::SystemIoFailure
                | Code::DiskFull
                | Code::CannotOpen
                | Code::FileLockingProtocolFailed
                | Code::SchemaChanged,
            ) => Self::Unavailable(error.into()),
            // For example corruption, a violated constraint, a wrong type.
            _ => Self::Failed(error.into()),
        }
    }
}

pub(super) fn open_error(path: &Path, error: &Error) -> OpenError {
    let (path, why) = (path.to_owned(), error.to_string());
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => OpenError::Corrupt { path, why },
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => OpenError::InUse { path },
        _ => OpenError::File { path, why },
    }
}
