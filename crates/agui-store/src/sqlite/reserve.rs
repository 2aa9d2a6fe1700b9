//! Reserved space for a disk that becomes full: a file beside the database. The file is removed for
//! writes that delete something or end runs. Other writes are refused from then on, or as soon as
//! the write-ahead log cannot be copied, until the disk has room for two such files.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use parking_lot::Mutex;

use super::files::with_suffix;
use agui_base::private_file::private_file_options;

/// Twice the longest write-ahead log: the file grows by at most one when it is copied, and the rest is for transactions.
const MAX_BYTES: u64 = 128 << 20;
/// The log is short on a small disk, but a transaction is not.
const MIN_BYTES: u64 = 256 << 10;
/// The part of a small disk that the file takes.
const DISK_PART: u64 = 32;
const RETRY_INTERVAL: Duration = Duration::from_secs(1);
/// A disk with more free space than this many reserves needs no reserve.
const PLENTY: u64 = 16;

/// The space of a disk, in bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct DiskSpace {
    total: u64,
    pub(super) available: u64,
}

#[derive(Debug)]
pub(super) struct DiskReserve {
    pub(super) database: PathBuf,
    path: PathBuf,
    /// The size of the reserve; 0, which means no reserve, if the size of the disk is unknown.
    bytes: u64,
    /// The time of the next attempt to take the reserve; `None` while it is held. It is missing if
    /// it was removed, or if the log needs its space.
    next_try: Mutex<Option<Instant>>,
}

impl DiskReserve {
    pub(super) fn new(database: &Path) -> Self {
        let path = with_suffix(database, "-reserve");
        let bytes = disk_space(database)
            .map_or(0, |space| (space.total / DISK_PART).clamp(MIN_BYTES, MAX_BYTES));
        let is_held = fs::metadata(&path).is_ok_and(|file| file.len() >= bytes);
        let next_try = Mutex::new((!is_held).then(Instant::now));
        Self { database: database.to_owned(), path, bytes, next_try }
    }

    /// The pages of the write-ahead log from which it is copied into the file: 8,000 (32 MB), or on
    /// a small disk a quarter of the reserve. A log that is copied too late has twice as many
    /// pages, plus the pages of one transaction.
    pub(super) fn log_pages(&self) -> u64 {
        const PAGE_BYTES: u64 = 4096;
        match self.bytes {
            0 => 8000,
            bytes => (bytes / 4 / PAGE_BYTES).min(8000),
        }
    }

    /// Returns whether there is space for all writes: the reserve is held, or not needed. Tries to
    /// take a needed reserve at most once a second.
    pub(super) fn has_space(&self) -> bool {
        let mut next_try = self.next_try.lock();
        match *next_try {
            None => true,
            _ if self.bytes == 0 || self.is_available(PLENTY) => true,
            Some(next) if Instant::now() < next => false,
            Some(_) => {
                let later = Instant::now() + RETRY_INTERVAL;
                let is_taken = self.take().unwrap_or(false);
                *next_try = (!is_taken).then_some(later);
                is_taken
            }
        }
    }

    /// Returns whether nearly no space is free beside the reserve. Then a small write, which
    /// overwrites a part of the log, may succeed, but a message may not.
    pub(super) fn is_disk_full(&self) -> bool {
        disk_space(&self.database).is_some_and(|space| space.available < self.bytes / 16)
    }

    fn is_available(&self, reserves: u64) -> bool {
        disk_space(&self.path).is_some_and(|space| space.available >= reserves * self.bytes)
    }

    /// Removes the reserve. Returns whether it was held.
    pub(super) fn give_up(&self) -> bool {
        self.refuse_writes();
        fs::remove_file(&self.path).is_ok()
    }

    /// Keeps the reserve for the writes that may use it.
    pub(super) fn refuse_writes(&self) {
        let mut next_try = self.next_try.lock();
        if next_try.is_none() {
            *next_try = Some(Instant::now() + RETRY_INTERVAL);
            tracing::error!(
                reserve = %self.path.display(),
                "the disk is full: only deletions and the ends of runs are written, until there is space again"
            );
        }
    }

    /// Leaves as much space free as the reserve takes, so that it is not removed again at once.
    fn take(&self) -> io::Result<bool> {
        if !self.is_available(2) {
            return Ok(false);
        }
        let file = private_file_options().write(true).open(&self.path)?;
        let taken = allocate(&file, self.bytes);
        if taken.is_err() {
            fs::remove_file(&self.path)?;
        }
        taken.map(|()| true)
    }
}

/// Returns the space of the disk with a file, or with its folder.
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
pub(super) fn disk_space(path: &Path) -> Option<DiskSpace> {
    let disk = nix::sys::statvfs::statvfs(path.parent()?).ok()?;
    let bytes = |blocks: u64| blocks.saturating_mul(disk.fragment_size());
    Some(DiskSpace { total: bytes(disk.blocks()), available: bytes(disk.blocks_available()) })
}

#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
fn allocate(file: &fs::File, bytes: u64) -> io::Result<()> {
    nix::fcntl::posix_fallocate(file, 0, bytes.cast_signed()).map_err(Into::into)
}

#[cfg(not(all(target_os = "linux", target_pointer_width = "64")))]
pub(super) fn disk_space(_: &Path) -> Option<DiskSpace> {
    None
}

#[cfg(not(all(target_os = "linux", target_pointer_width = "64")))]
fn allocate(_: &fs::File, _: u64) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}
