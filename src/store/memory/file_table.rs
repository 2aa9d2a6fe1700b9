//! The table of files of the store in memory.

use std::collections::BTreeMap;

use bytes::Bytes;

use crate::store::{Millis, files::StoredFile, now};

/// Files by their numbers.
#[derive(Debug, Default)]
pub(super) struct FileTable {
    pub(super) files: BTreeMap<i64, FileEntry>,
    pub(super) last_number: i64,
    pub(super) secret: Option<[u8; 32]>,
}

#[derive(Debug)]
pub(super) struct FileEntry {
    pub(super) file: StoredFile,
    pub(super) bytes: Bytes,
    /// When it was made, or a thread that used it was deleted.
    pub(super) unused_since: Millis,
}

impl FileTable {
    pub(super) fn bytes(&self, owner: Option<&str>) -> u64 {
        let files = self.files.values().map(|entry| &entry.file);
        files.filter(|file| owner.is_none_or(|owner| *file.owner == *owner)).map(|file| file.bytes).sum()
    }

    pub(super) fn delete_all(&mut self, owner: &str) {
        self.files.retain(|_, entry| *entry.file.owner != *owner);
    }

    pub(super) fn find(&mut self, owner: Option<&str>, id: &str) -> Option<&mut FileEntry> {
        let is_owned = |entry: &FileEntry| owner.is_none_or(|owner| *entry.file.owner == *owner);
        self.files.values_mut().find(|entry| entry.file.id == id && is_owned(entry))
    }

    /// Notes that a thread was removed that used a file.
    pub(super) fn release(&mut self, owner: &str, id: &str) {
        if let Some(entry) = self.find(Some(owner), id) {
            entry.unused_since = now();
        }
    }
}
