//! The files of the store in memory.

use std::{collections::HashSet, ops::Range};

use async_trait::async_trait;
use bytes::Bytes;

use super::{MemoryStore, tables::FileEntry};
use crate::store::{
    Millis, StoreResult,
    files::{DeletedFile, FileDeletion, FileStore, NewFile, PutFile, SecretName, StoredFile, new_secret},
};

/// The most bytes of all files.
const MAX_BYTES: u64 = 1 << 30;

#[async_trait]
impl FileStore for MemoryStore {
    async fn put(&self, file: &NewFile<'_>) -> StoreResult<PutFile> {
        let files = &mut self.0.lock().files;
        let same = |entry: &&mut FileEntry| *entry.file.owner == *file.owner && entry.file.digest == file.digest;
        if let Some(entry) = files.files.values_mut().find(same) {
            entry.unused_since = entry.unused_since.max(file.now);
            return Ok(PutFile::Existed(entry.file.clone()));
        }
        let exceeds = |used: u64, max: Option<u64>| max.is_some_and(|max| used + file.bytes.len() as u64 > max);
        if exceeds(files.bytes(Some(file.owner)), file.max_of_owner) {
            return Ok(PutFile::FullOfOwner);
        }
        if exceeds(files.bytes(None), file.max_of_all.or(Some(MAX_BYTES)).min(Some(MAX_BYTES))) {
            return Ok(PutFile::Full);
        }
        files.last_number += 1;
        let stored = StoredFile { object_key: None, ..StoredFile::new(files.last_number, file) };
        let entry = FileEntry { file: stored.clone(), bytes: file.bytes.clone(), unused_since: file.now };
        files.files.insert(stored.number, entry);
        Ok(PutFile::Stored(stored))
    }

    async fn file(&self, owner: Option<&str>, id: &str) -> StoreResult<Option<StoredFile>> {
        Ok(self.0.lock().files.find(owner, id).map(|entry| entry.file.clone()))
    }

    async fn file_bytes(&self, file: &StoredFile, range: Range<u64>) -> StoreResult<Option<Bytes>> {
        let tables = self.0.lock();
        let Some(entry) = tables.files.files.get(&file.number) else { return Ok(None) };
        let [start, end] = [range.start, range.end].map(|at| at.min(entry.file.bytes) as usize);
        Ok(Some(entry.bytes.slice(start.min(end)..end)))
    }

    async fn files(&self, owner: &str, before: Option<i64>, limit: usize) -> StoreResult<Vec<StoredFile>> {
        let tables = self.0.lock();
        let files = tables.files.files.range(..before.unwrap_or(i64::MAX)).rev().map(|(_, entry)| &entry.file);
        Ok(files.filter(|file| *file.owner == *owner).take(limit).cloned().collect())
    }

    async fn delete_file(&self, owner: &str, id: &str, deletion: FileDeletion) -> StoreResult<DeletedFile> {
        let mut tables = self.0.lock();
        let Some(number) = tables.files.find(Some(owner), id).map(|entry| entry.file.number) else {
            return Ok(DeletedFile::Unknown);
        };
        let uses = tables.uses(owner, id);
        if uses > 0 && deletion == FileDeletion::UnlessUsed {
            return Ok(DeletedFile::Used(uses));
        }
        tables.files.files.remove(&number);
        Ok(DeletedFile::Deleted)
    }

    async fn sweep_files(&self, unused_before: Option<Millis>, _now: Millis) -> StoreResult<u64> {
        let tables = &mut *self.0.lock();
        let threads = tables.threads.values();
        let used: HashSet<_> =
            threads.flat_map(|entry| entry.files.iter().map(|id| (&*entry.thread.key.owner, &**id))).collect();
        let before = tables.files.files.len();
        tables.files.files.retain(|_, entry| {
            let is_old = unused_before.is_some_and(|before| entry.unused_since < before);
            !is_old || used.contains(&(&*entry.file.owner, &*entry.file.id))
        });
        Ok((before - tables.files.files.len()) as u64)
    }

    async fn secret(&self, name: SecretName) -> StoreResult<[u8; 32]> {
        Ok(*self.0.lock().files.secrets.entry(name).or_insert_with(new_secret))
    }
}
