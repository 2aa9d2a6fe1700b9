//! Converts errors of SQLite. Errors that a later attempt may not have are transient.

use std::{io, path::Path};

use rusqlite::{Error, ErrorCode, ffi::SQLITE_IOERR_SHMSIZE};

use crate::{OpenError, StoreError};

impl From<Error> for StoreError {
    fn from(error: Error) -> Self {
        use ErrorCode as Code;
        // The shared memory of the write-ahead log is a file as well.
        let is_shared_memory =
            error.sqlite_error().is_some_and(|error| error.extended_code == SQLITE_IOERR_SHMSIZE);
        match error.sqlite_error_code() {
            Some(Code::DiskFull) => disk_full(),
            Some(Code::SystemIoFailure) if is_shared_memory => disk_full(),
            Some(
                Code::DatabaseBusy
                | Code::DatabaseLocked
                | Code::OutOfMemory
                | Code::ReadOnly
                | Code::OperationInterrupted
                | Code::SystemIoFailure
                | Code::CannotOpen
                | Code::FileLockingProtocolFailed
                | Code::SchemaChanged,
            ) => Self::Unavailable(error.into()),
            // For example corruption, a violated constraint, a wrong type.
            _ => Self::Failed(error.into()),
        }
    }
}

pub(super) fn disk_full() -> StoreError {
    let problem = "the disk is full: free space on it, or delete threads";
    StoreError::Unavailable(io::Error::new(io::ErrorKind::StorageFull, problem).into())
}

pub(super) fn open_error(path: &Path, error: &Error) -> OpenError {
    let (path, why) = (path.to_owned(), error.to_string());
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
            OpenError::Corrupt { path, why }
        }
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => OpenError::InUse { path },
        _ => OpenError::File { path, why },
    }
}
