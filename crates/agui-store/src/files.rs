//! Files of owners: the [`FileStore`] trait, its arguments and results.
//!
//! A file is stored in chunks. Its row is reserved first, with its bytes, so that concurrent
//! uploads cannot exceed a limit together; the file is invisible until its last chunk is stored. A
//! file is *used* by the threads whose messages name it. [`FileStore::sweep_files`] deletes files
//! that no thread uses.
//!
//! The bytes can be at an object store ([`FileObjects`]). The row is written before the object. The
//! deletion of the row keeps the object's key ([`FileStore::deleted_objects`]) in the same
//! transaction, until the object is deleted. So a crash at any point leaves no unreferenced object.

use std::{
    collections::BTreeSet,
    fmt,
    ops::{self, Range},
    sync::Arc,
};

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::BoxStream;
use sha2::{Digest as _, Sha256};

use super::{Millis, StoreResult};
use agui_protocol::Message;

/// An upload that takes longer counts as interrupted.
#[cfg(any(feature = "postgres", feature = "sqlite"))]
pub(super) const UPLOAD_LIMIT: Millis = 3_600_000;

/// The bytes of a file beside its content: a row, its entries in indices, the head of a chunk. In
/// SQLite a file of four bytes without a name takes 330 bytes; 200 characters of a name and the
/// long owner of a token can add 1,400.
pub const FILE_OVERHEAD: u64 = 2048;

/// The key of the sum of all files. The keys of owners' sums are not empty.
pub(super) const ALL_OWNERS: &str = "";

/// Keeps the files of a [`Store`](super::Store). The same bytes of one owner are one file.
#[async_trait]
pub trait FileStore: Send + Sync {
    /// Stores a file, unless its owner has one with the same bytes.
    async fn put(&self, file: &NewFile<'_>) -> StoreResult<PutFile>;

    /// Reads a file of this owner, or of any owner if `owner` is `None`, without its bytes.
    async fn file(&self, owner: Option<&str>, id: &str) -> StoreResult<Option<StoredFile>>;

    /// Reads a part of the bytes of a file that is not at an object store. Returns `None` if the
    /// file was deleted.
    ///
    /// # Errors
    /// [`StoreError::Failed`](super::StoreError::Failed) if the bytes are damaged.
    async fn file_bytes(&self, file: &StoredFile, range: Range<u64>) -> StoreResult<Option<Bytes>>;

    /// Lists up to `limit` files of an owner, the newest first. `before` selects files with smaller
    /// numbers.
    async fn files(
        &self,
        owner: &str,
        before: Option<i64>,
        limit: usize,
    ) -> StoreResult<Vec<StoredFile>>;

    /// Deletes a file.
    async fn delete_file(
        &self,
        owner: &str,
        id: &str,
        deletion: FileDeletion,
    ) -> StoreResult<DeletedFile>;

    /// Deletes the files that no thread has used since `unused_before`, and interrupted uploads.
    /// Returns the number of files.
    async fn sweep_files(&self, unused_before: Option<Millis>, now: Millis) -> StoreResult<u64>;

    /// Returns a secret of this store, which is made once. All processes that share the store get
    /// the same secret.
    async fn secret(&self, name: SecretName) -> StoreResult<[u8; 32]>;

    /// Returns up to `limit` keys of objects whose files are deleted.
    async fn deleted_objects(&self, _limit: usize) -> StoreResult<Vec<String>> {
        Ok(Vec::new())
    }

    /// Notes that these objects are deleted.
    async fn forget_objects(&self, _keys: &[String]) -> StoreResult<()> {
        Ok(())
    }
}

/// The use of a secret. Each use has its own secret, so that no output of one is an output of
/// another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SecretName {
    /// Signs the URLs of files.
    Files,
    /// Makes the ids that other servers get in place of clients' ids.
    Upstream,
}

impl SecretName {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Files => "files",
            Self::Upstream => "upstream",
        }
    }
}

/// The pieces of a file.
pub type FileStream = BoxStream<'static, StoreResult<Bytes>>;

/// Keeps the bytes of files in place of the database.
#[async_trait]
pub trait FileObjects: fmt::Debug + Send + Sync {
    /// Stores an object.
    async fn write(&self, key: &str, bytes: Bytes) -> StoreResult<()>;

    /// Reads a part of an object. Returns `None` if there is no such object.
    async fn read(&self, key: &str, range: Range<u64>) -> StoreResult<Option<FileStream>>;

    /// Deletes an object, if it exists.
    async fn delete(&self, key: &str) -> StoreResult<()>;
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
    /// The size of an image, in pixels.
    pub size: Option<ImageSize>,
    pub now: Millis,
    pub limits: FileLimits,
    /// The receiver of the bytes in place of the database. A store in memory keeps them itself.
    pub objects: Option<&'a dyn FileObjects>,
}

/// Limits of the files of an owner, and of all files of a store. A file counts with
/// [`FILE_OVERHEAD`].
#[derive(Debug, Clone, Copy, Default)]
pub struct FileLimits {
    pub owner_bytes: Option<u64>,
    pub owner_files: Option<u64>,
    pub bytes: Option<u64>,
    pub files: Option<u64>,
}

/// A limit that another file would exceed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileLimit {
    OwnerBytes,
    OwnerFiles,
    Bytes,
    Files,
}

impl FileLimits {
    /// Returns the limit that one more file would exceed.
    pub(super) fn exceeded_by(
        &self,
        new: u64,
        of_owner: FileSums,
        of_all: FileSums,
    ) -> Option<FileLimit> {
        let new = FileSums { files: 1, bytes: new };
        let [of_owner, of_all] = [of_owner, of_all].map(|before| before + new);
        let limits = [
            (self.owner_bytes, of_owner.cost(), FileLimit::OwnerBytes),
            (self.owner_files, of_owner.files, FileLimit::OwnerFiles),
            (self.bytes, of_all.cost(), FileLimit::Bytes),
            (self.files, of_all.files, FileLimit::Files),
        ];
        limits
            .into_iter()
            .find(|(max, sum, _)| max.is_some_and(|max| *sum > max))
            .map(|(_, _, limit)| limit)
    }
}

/// The number and the bytes of several files. Stores update them with each write, because adding up
/// 300,000 files takes 50 ms.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct FileSums {
    pub(super) files: u64,
    pub(super) bytes: u64,
}

impl FileSums {
    /// Returns the bytes that the files take.
    pub(super) fn cost(self) -> u64 {
        self.bytes.saturating_add(self.files.saturating_mul(FILE_OVERHEAD))
    }
}

impl ops::Add for FileSums {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { files: self.files + other.files, bytes: self.bytes.saturating_add(other.bytes) }
    }
}

impl ops::Sub for FileSums {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self {
            files: self.files.saturating_sub(other.files),
            bytes: self.bytes.saturating_sub(other.bytes),
        }
    }
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
    /// A newer file has a higher number.
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
    /// The key of the bytes, if they are at an object store.
    pub object_key: Option<String>,
}

/// The result of storing a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PutFile {
    Stored(StoredFile),
    /// The owner has this file with the same bytes.
    Existed(StoredFile),
    Full(FileLimit),
}

/// Says whether a used file is deleted.
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
    /// Nothing is deleted, because this many threads use the file.
    Used(u64),
}

impl StoredFile {
    pub(super) fn new(number: i64, file: &NewFile<'_>) -> Self {
        let id = format!("file_{}", uuid::Uuid::new_v4().simple());
        Self {
            number,
            object_key: file.objects.map(|_| id.clone()),
            id,
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
pub(super) fn named_files<'m>(messages: impl Iterator<Item = &'m Message>) -> BTreeSet<String> {
    messages.flat_map(Message::stored_files).map(str::to_owned).collect()
}

/// Returns a new secret: 366 random bits, hashed.
pub fn new_secret() -> [u8; 32] {
    let random: Vec<u8> = (0..3).flat_map(|_| uuid::Uuid::new_v4().into_bytes()).collect();
    Sha256::digest(random).into()
}
