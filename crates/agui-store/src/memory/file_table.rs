//! The table of files of the store in memory.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use bytes::Bytes;

use crate::{
    Millis,
    files::{ALL_OWNERS, FileSums, SecretName, StoredFile},
};

/// Files by owner and number.
#[derive(Debug, Default)]
pub(super) struct FileTable {
    files: BTreeMap<FileKey, FileEntry>,
    by_id: HashMap<String, FileKey>,
    by_digest: HashMap<(Arc<str>, String), i64>,
    sums: HashMap<Arc<str>, FileSums>,
    pub(super) last_number: i64,
    pub(super) secrets: HashMap<SecretName, [u8; 32]>,
}

type FileKey = (Arc<str>, i64);

#[derive(Debug)]
pub(super) struct FileEntry {
    pub(super) file: StoredFile,
    pub(super) bytes: Bytes,
    /// The time at which the file was stored, or the last thread that used it was deleted.
    pub(super) unused_since: Millis,
}

impl FileTable {
    pub(super) fn insert(&mut self, entry: FileEntry) {
        let (owner, number) = (entry.file.owner.clone(), entry.file.number);
        for owner in [owner.clone(), ALL_OWNERS.into()] {
            let sums = self.sums.entry(owner).or_default();
            *sums = *sums + entry.sums();
        }
        self.by_id.insert(entry.file.id.clone(), (owner.clone(), number));
        self.by_digest.insert((owner.clone(), entry.file.digest.clone()), number);
        self.files.insert((owner, number), entry);
    }

    pub(super) fn remove(&mut self, key: &FileKey) {
        let Some(entry) = self.files.remove(key) else { return };
        for owner in [&*key.0, ALL_OWNERS] {
            let Some(sums) = self.sums.get_mut(owner) else { continue };
            *sums = *sums - entry.sums();
            if sums.files == 0 {
                self.sums.remove(owner);
            }
        }
        self.by_id.remove(&entry.file.id);
        self.by_digest.remove(&(key.0.clone(), entry.file.digest));
    }

    /// Removes the files that `is_kept` rejects. Returns their number.
    pub(super) fn retain(&mut self, is_kept: impl Fn(&FileEntry) -> bool) -> u64 {
        let removed = self.files.iter().filter(|(_, entry)| !is_kept(entry));
        let removed: Vec<_> = removed.map(|(key, _)| key.clone()).collect();
        removed.iter().for_each(|key| self.remove(key));
        removed.len() as u64
    }

    /// Returns the sums of an owner's files, or of all files.
    pub(super) fn sums(&self, owner: &str) -> FileSums {
        self.sums.get(owner).copied().unwrap_or_default()
    }

    pub(super) fn get(&self, file: &StoredFile) -> Option<&FileEntry> {
        self.files.get(&(file.owner.clone(), file.number))
    }

    pub(super) fn find_digest(&mut self, owner: &str, digest: &str) -> Option<&mut FileEntry> {
        let owner = Arc::from(owner);
        let number = *self.by_digest.get(&(Arc::clone(&owner), digest.to_owned()))?;
        self.files.get_mut(&(owner, number))
    }

    /// Returns the file with an id, of this owner or of any owner.
    pub(super) fn find(&mut self, owner: Option<&str>, id: &str) -> Option<&mut FileEntry> {
        let key = self.by_id.get(id).filter(|key| owner.is_none_or(|owner| *key.0 == *owner))?;
        self.files.get_mut(key)
    }

    /// Returns the files of an owner with numbers below `before`, the newest first.
    pub(super) fn owned_by(&self, owner: &str, before: i64) -> impl Iterator<Item = &StoredFile> {
        let owner: Arc<str> = owner.into();
        let range = (owner.clone(), i64::MIN)..(owner, before);
        self.files.range(range).rev().map(|(_, entry)| &entry.file)
    }
}

impl FileEntry {
    fn sums(&self) -> FileSums {
        FileSums { files: 1, bytes: self.file.bytes }
    }
}
