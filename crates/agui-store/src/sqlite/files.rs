//! The files of a database: created for this user only, locked against other processes, and compared later with the files
//! that were opened.
//!
//! Two locks keep other processes out. The lock file belongs to the path: it protects a database that is replaced while
//! this process uses it. The lock on the database itself belongs to the file: it holds if somebody removes the lock file.

use std::{
    fs::{self, File, TryLockError},
    io,
    path::{Path, PathBuf},
};

use crate::OpenError;
use agui_base::private_file::private_file_options;

/// The files of an open database. Each user of a connection keeps this value, because it has the
/// locks, and because closing a file releases all locks that SQLite has on it in this process.
#[derive(Debug)]
pub(super) struct DatabaseFiles {
    /// The canonical path of the database.
    pub(super) path: PathBuf,
    lock_file: File,
    database: Option<File>,
}

/// The suffixes of the files that a database consists of while it is open. All of them have data.
const SUFFIXES: [&str; 3] = ["", "-wal", "-shm"];

/// Identifies a file under any name. `None` if there is no such file, or the system has no such
/// numbers.
pub(super) type FileId = Option<(u64, u64)>;

impl DatabaseFiles {
    /// Creates the folder and the database, unless they exist, and takes the locks.
    pub(super) fn lock(path: &Path) -> Result<Self, OpenError> {
        let path = create(path)?;
        let lock_file = lock_path(&path)?;
        let database = lock_database(&path)?;
        Ok(Self { path, lock_file, database })
    }

    /// Waits until all writes to the database are on the disk.
    pub(super) fn sync(&self) -> io::Result<()> {
        self.database.as_ref().map_or(Ok(()), File::sync_data)
    }

    /// Returns the files that have the names of the database now.
    pub(super) fn ids(&self) -> io::Result<Vec<FileId>> {
        let id = |suffix| match fs::metadata(with_suffix(&self.path, suffix)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            metadata => Ok(file_id(&metadata?)),
        };
        SUFFIXES.into_iter().map(id).collect()
    }
}

/// Unlocks explicitly. A process that is being started has copies of the open files until it runs
/// its program, and a lock lasts as long as a copy.
impl Drop for DatabaseFiles {
    fn drop(&mut self) {
        let unlocked =
            self.lock_file.unlock().and(self.database.as_ref().map_or(Ok(()), unlock_database));
        if let Err(error) = unlocked {
            tracing::debug!(%error, "the database cannot be unlocked");
        }
    }
}

/// An existing file is not opened here: closing it would release the locks of a store of this process.
fn create(path: &Path) -> Result<PathBuf, OpenError> {
    let to_error = |error| file_error(path, error);
    match fs::canonicalize(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        other => return other.map_err(to_error),
    }
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        fs::create_dir_all(folder).map_err(to_error)?;
    }
    private_file_options().append(true).open(path).map_err(to_error)?;
    fs::canonicalize(path).map_err(to_error)
}

fn lock_path(path: &Path) -> Result<File, OpenError> {
    let to_error = |error| file_error(path, error);
    let file =
        private_file_options().write(true).open(with_suffix(path, ".lock")).map_err(to_error)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(OpenError::InUse { path: path.to_owned() }),
        Err(TryLockError::Error(error)) => Err(to_error(error)),
    }
}

/// Locks one byte far behind the end of the database and behind the bytes that SQLite locks.
/// `flock` is unsuitable: network file systems turn it into a lock of all bytes, and SQLite would
/// wait for that lock.
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
fn lock_database(path: &Path) -> Result<Option<File>, OpenError> {
    let file = File::options()
        .read(true)
        .write(true)
        .open(path)
        .map_err(|error| file_error(path, error))?;
    match set_lock(&file, nix::libc::F_WRLCK) {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
            // The store that has the file may be in this process, which would lose its locks if the file was closed.
            std::mem::forget(file);
            Err(OpenError::InUse { path: path.to_owned() })
        }
        Ok(()) => Ok(Some(file)),
        // Some sandboxes lack this kind of lock. The lock file is left.
        Err(error) => {
            tracing::debug!(%error, "the database itself cannot be locked");
            Ok(Some(file))
        }
    }
}

#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
fn unlock_database(file: &File) -> io::Result<()> {
    set_lock(file, nix::libc::F_UNLCK)
}

#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
fn set_lock(file: &File, kind: i32) -> io::Result<()> {
    use nix::{
        errno::Errno,
        fcntl::{FcntlArg, fcntl},
        libc,
    };
    /// A database has at most 2^48 bytes.
    const LOCKED_BYTE: i64 = 1 << 60;
    let (l_type, l_whence) = (kind as libc::c_short, libc::SEEK_SET as libc::c_short);
    let lock = libc::flock { l_type, l_whence, l_start: LOCKED_BYTE, l_len: 1, l_pid: 0 };
    match fcntl(file, FcntlArg::F_OFD_SETLK(&lock)) {
        Ok(_) => Ok(()),
        Err(Errno::EAGAIN | Errno::EACCES) => Err(io::ErrorKind::WouldBlock.into()),
        Err(error) => Err(error.into()),
    }
}

/// Other systems have the lock file only.
#[cfg(not(all(target_os = "linux", target_pointer_width = "64")))]
fn lock_database(_: &Path) -> Result<Option<File>, OpenError> {
    Ok(None)
}

#[cfg(not(all(target_os = "linux", target_pointer_width = "64")))]
fn unlock_database(_: &File) -> io::Result<()> {
    Ok(())
}

pub(super) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

#[cfg(unix)]
fn file_id(metadata: &fs::Metadata) -> FileId {
    use std::os::unix::fs::MetadataExt as _;
    Some((metadata.dev(), metadata.ino()))
}

#[cfg(not(unix))]
fn file_id(_: &fs::Metadata) -> FileId {
    None
}

/// An error about the file of the database.
pub(super) fn file_error(path: &Path, why: impl ToString) -> OpenError {
    OpenError::File { path: path.to_owned(), why: why.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_in_another_process_does_not_keep_the_locks() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("threads.db");
        let files = DatabaseFiles::lock(&path).unwrap();
        // As a process has them that is being started.
        let copies = (
            files.lock_file.try_clone().unwrap(),
            files.database.as_ref().map(|file| file.try_clone().unwrap()),
        );
        assert!(matches!(DatabaseFiles::lock(&path), Err(OpenError::InUse { .. })));
        drop(files);
        DatabaseFiles::lock(&path).unwrap();
        drop(copies);
    }
}
