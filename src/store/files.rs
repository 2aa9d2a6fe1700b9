//! Files of owners: the [`FileStore`] trait, its arguments and results.
//!
//! A file is stored in chunks. Its row is reserved first, with its bytes, so that concurrent uploads cannot exceed a limit together;
//! nobody sees it until the last chunk is stored. A file is *used* by the threads whose messages name it. One that no thread uses
//! is deleted by [`FileStore::sweep_files`].

use std::{collections::BTreeSet, ops::Range, sync::Arc};

use async_trait::async_trait;
use bytes::Bytes;
use sha2::{Digest as _, Sha256};

use super::{Millis, StoreResult};
use crate::protocol::Message;

/// An upload that takes longer was interrupted.
#[cfg(any(feature = "postgres", feature = "sqlite"))]
pub(super) const UPLOAD_LIMIT: Millis = 3_600_000;

/// Keeps the files of a [`Store`](super::Store). The same bytes of one owner are one file.
#[async_trait]
pub trait FileStore: Send + Sync {
    /// Stores a file, unless its owner has one with the same bytes.
    async fn put(&self, file: &NewFile<'_>) -> StoreResult<PutFile>;

    /// Reads a file without its bytes: of this owner, or of any one if `owner` is `None`.
    async fn file(&self, owner: Option<&str>, id: &str) -> StoreResult<Option<StoredFile>>;

    /// Reads a part of a file's bytes. Returns `None` if it was deleted.
    ///
    /// # Errors
    /// [`StoreError::Failed`](super::StoreError::Failed) if the bytes are damaged.
    async fn file_bytes(&self, file: &StoredFile, range: Range<u64>) -> StoreResult<Option<Bytes>>;

    /// Lists up to `limit` files of an owner, the newest first: all, or those before the file with the number `before`.
    async fn files(&self, owner: &str, before: Option<i64>, limit: usize) -> StoreResult<Vec<StoredFile>>;

    /// Deletes a file.
    async fn delete_file(&self, owner: &str, id: &str, deletion: FileDeletion) -> StoreResult<DeletedFile>;

    /// Deletes the files that no thread has used since `unused_before`, and what was left of interrupted uploads. Returns the number
    /// of files.
    async fn sweep_files(&self, unused_before: Option<Millis>, now: Millis) -> StoreResult<u64>;

    /// Returns the secret of this store, which is made once. All processes that share the store get the same.
    async fn secret(&self) -> StoreResult<[u8; 32]>;
}

/// A file to store.
#[derive(Debug, Clone)]
pub struct NewFile<'a> {
    pub owner: &'a str,
    pub media_type: &'a str,
    pub name: Option<&'a str>,
    pub bytes: Bytes,
    /// The SHA-256 of the bytes, in hex.
    pub digest: &'a str,
    /// Of an image, in pixels.
    pub size: Option<ImageSize>,
    pub now: Millis,
    /// The most bytes that all files of the owner have together.
    pub max_of_owner: Option<u64>,
    /// The most bytes that all files of the store have together.
    pub max_of_all: Option<u64>,
}

/// The width and the height of an image, in pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ImageSize {
    pub width: u32,
    pub height: u32,
}

/// A file without its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredFile {
    /// Ascending: a newer file has a higher one.
    pub number: i64,
    /// `file_` and 32 hex digits, unguessable.
    pub id: String,
    pub owner: Arc<str>,
    /// The SHA-256 of the bytes, in hex.
    pub digest: String,
    pub media_type: String,
    pub name: Option<String>,
    pub bytes: u64,
    pub size: Option<ImageSize>,
    pub created_at: Millis,
}

/// The result of storing a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PutFile {
    Stored(StoredFile),
    /// The owner has this file with the same bytes.
    Existed(StoredFile),
    /// The files of the owner would have more than `max_of_owner` bytes.
    FullOfOwner,
    /// All files would have more than `max_of_all` bytes.
    Full,
}

/// Whether a file is deleted that threads use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileDeletion {
    UnlessUsed,
    EvenIfUsed,
}

/// The result of deleting a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeletedFile {
    Deleted,
    Unknown,
    /// Nothing is deleted: so many threads use it.
    Used(u64),
}

impl StoredFile {
    pub(super) fn new(number: i64, file: &NewFile<'_>) -> Self {
        Self {
            number,
            id: format!("file_{}", uuid::Uuid::new_v4().simple()),
            owner: file.owner.into(),
            digest: file.digest.to_owned(),
            media_type: file.media_type.to_owned(),
            name: file.name.map(str::to_owned),
            bytes: file.bytes.len() as u64,
            size: file.size,
            created_at: file.now,
        }
    }
}

/// Returns the ids of the files that messages name.
pub(super) fn named_files<'m>(messages: impl Iterator<Item = &'m Message>) -> BTreeSet<&'m str> {
    messages.flat_map(Message::stored_files).collect()
}

/// Returns a new secret: 366 random bits, hashed.
pub(super) fn new_secret() -> [u8; 32] {
    let random: Vec<u8> = (0..3).flat_map(|_| uuid::Uuid::new_v4().into_bytes()).collect();
    Sha256::digest(random).into()
}
