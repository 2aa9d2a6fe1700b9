//! The bytes of files, in the database or at an object store, and the deletion of objects.

use std::ops::Range;

use async_stream::try_stream;
use bytes::{Bytes, BytesMut};
use futures::{StreamExt as _, TryStreamExt as _, stream};

use super::{Files, digest};
use crate::store::{
    StoreError, StoreResult,
    files::{FileStream, StoredFile},
};

/// The bytes of a file that are in memory while it is read.
const PIECE_BYTES: u64 = 256 * 1024;
/// The objects that are deleted before the store is asked for more, and at once.
const MAX_DELETED_OBJECTS: usize = 200;
const DELETED_AT_ONCE: usize = 8;

impl Files {
    /// Reads the bytes of a file; `None` if it was deleted.
    pub(crate) async fn bytes(&self, file: &StoredFile) -> StoreResult<Option<Bytes>> {
        if file.object_key.is_none() {
            return self.store()?.file_bytes(file, 0..file.bytes).await;
        }
        let Some(pieces) = self.stream(file, 0..file.bytes).await? else { return Ok(None) };
        let read = pieces.try_fold(BytesMut::new(), async |mut read, piece| {
            read.extend_from_slice(&piece);
            Ok(read)
        });
        let bytes = read.await?.freeze();
        if digest(bytes.clone()).await? == file.digest {
            Ok(Some(bytes))
        } else {
            Err(StoreError::Failed("the object of a file has other bytes than were stored".into()))
        }
    }

    /// Reads a part of the bytes of a file, piece by piece; `None` if it was deleted. The first piece of a database is read at once,
    /// so that its error comes before the stream.
    pub(crate) async fn stream(&self, file: &StoredFile, range: Range<u64>) -> StoreResult<Option<FileStream>> {
        if let Some(key) = &file.object_key {
            let objects = self.0.objects.as_ref().ok_or_else(|| {
                StoreError::Failed("the bytes of a file are at an object store: set [files] url".into())
            })?;
            return match objects.read(key, range).await? {
                Some(pieces) => Ok(Some(pieces)),
                None if self.file(None, &file.id).await?.is_none() => Ok(None),
                None => Err(StoreError::Failed(format!("the object store has no {key}").into())),
            };
        }
        let Some(first) = self.piece(file, &range).await? else { return Ok(None) };
        let (files, file) = (self.clone(), file.clone());
        let pieces = try_stream! {
            let mut at = range.start + first.len() as u64;
            yield first;
            while at < range.end {
                let piece = files.piece(&file, &(at..range.end)).await?;
                let piece = piece.ok_or_else(|| StoreError::Failed("the file was deleted".into()))?;
                at += piece.len() as u64;
                yield piece;
            }
        };
        Ok(Some(pieces.boxed()))
    }

    /// Reads the beginning of a range, up to the end of a chunk of the store.
    async fn piece(&self, file: &StoredFile, range: &Range<u64>) -> StoreResult<Option<Bytes>> {
        let end = (range.start / PIECE_BYTES + 1) * PIECE_BYTES;
        self.store()?.file_bytes(file, range.start..end.min(range.end)).await
    }

    /// Deletes the objects of deleted files. Those of an object store that does not respond stay noted.
    pub(crate) async fn delete_objects(&self) -> StoreResult<()> {
        let Some(objects) = &self.0.objects else { return Ok(()) };
        loop {
            let keys = self.store()?.deleted_objects(MAX_DELETED_OBJECTS).await?;
            if keys.is_empty() {
                return Ok(());
            }
            let delete = async |key: String| objects.delete(&key).await;
            stream::iter(keys.clone()).map(Ok).try_for_each_concurrent(DELETED_AT_ONCE, delete).await?;
            self.store()?.forget_objects(&keys).await?;
        }
    }
}
