//! The files of the store in memory.

use std::{collections::HashSet, ops::Range};

use async_trait::async_trait;
use bytes::Bytes;

use super::{MemoryStore, file_table::FileEntry};
use crate::{
    Millis, StoreResult,
    files::{
        ALL_OWNERS, DeletedFile, FileDeletion, FileLimits, FileStore, NewFile, PutFile, SecretName,
        StoredFile, new_secret,
    },
};

/// The most bytes of all files.
const MAX_BYTES: u64 = 1 << 30;

#[async_trait]
impl FileStore for MemoryStore {
    async fn put(&self, file: &NewFile<'_>) -> StoreResult<PutFile> {
        let files = &mut self.0.lock().files;
        if let Some(entry) = files.find_digest(file.owner, file.digest) {
            entry.unused_since = entry.unused_since.max(file.now);
            return Ok(PutFile::Existed(entry.file.clone()));
        }
        let max_bytes = file.limits.bytes.map_or(MAX_BYTES, |max| max.min(MAX_BYTES));
        let limits = FileLimits { bytes: Some(max_bytes), ..file.limits };
        let (of_owner, of_all) = (files.sums(file.owner), files.sums(ALL_OWNERS));
        if let Some(limit) = limits.exceeded_by(file.bytes.len() as u64, of_owner, of_all) {
            return Ok(PutFile::Full(limit));
        }
        files.last_number += 1;
        let stored = StoredFile { object_key: None, ..StoredFile::new(files.last_number, file) };
        files.insert(FileEntry {
            file: stored.clone(),
            bytes: file.bytes.clone(),
            unused_since: file.now,
        });
        Ok(PutFile::Stored(stored))
    }

    async fn file(&self, owner: Option<&str>, id: &str) -> StoreResult<Option<StoredFile>> {
        Ok(self.0.lock().files.find(owner, id).map(|entry| entry.file.clone()))
    }

    async fn file_bytes(&self, file: &StoredFile, range: Range<u64>) -> StoreResult<Option<Bytes>> {
        let tables = self.0.lock();
        let Some(entry) = tables.files.get(file) else { return Ok(None) };
        let [start, end] = [range.start, range.end].map(|at| at.min(entry.file.bytes) as usize);
        Ok(Some(entry.bytes.slice(start.min(end)..end)))
    }

    async fn files(
        &self,
        owner: &str,
        before: Option<i64>,
        limit: usize,
    ) -> StoreResult<Vec<StoredFile>> {
        let tables = self.0.lock();
        Ok(tables.files.owned_by(owner, before.unwrap_or(i64::MAX)).take(limit).cloned().collect())
    }

    async fn delete_file(
        &self,
        owner: &str,
        id: &str,
        deletion: FileDeletion,
    ) -> StoreResult<DeletedFile> {
        let mut tables = self.0.lock();
        let Some(entry) = tables.files.find(Some(owner), id) else {
            return Ok(DeletedFile::Unknown);
        };
        let key = (entry.file.owner.clone(), entry.file.number);
        let uses = tables.uses(owner, id);
        if uses > 0 && deletion == FileDeletion::UnlessUsed {
            return Ok(DeletedFile::Used(uses));
        }
        tables.files.remove(&key);
        Ok(DeletedFile::Deleted)
    }

    async fn sweep_files(&self, unused_before: Option<Millis>, _now: Millis) -> StoreResult<u64> {
        let tables = &mut *self.0.lock();
        let threads = tables.threads.values();
        let used: HashSet<_> = threads
            .flat_map(|entry| entry.files.iter().map(|id| (&*entry.thread.key.owner, &**id)))
            .collect();
        Ok(tables.files.retain(|entry| {
            let is_old = unused_before.is_some_and(|before| entry.unused_since < before);
            !is_old || used.contains(&(&*entry.file.owner, &*entry.file.id))
        }))
    }

    async fn secret(&self, name: SecretName) -> StoreResult<[u8; 32]> {
        Ok(*self.0.lock().files.secrets.entry(name).or_insert_with(new_secret))
    }
}
