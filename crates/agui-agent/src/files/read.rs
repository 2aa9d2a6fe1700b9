//! The bytes of files, in the database or at an object store, and the deletion of objects.

use std::{collections::HashSet, ops::Range};

use async_stream::try_stream;
use bytes::{Bytes, BytesMut};
use futures::{StreamExt as _, TryStreamExt as _, stream};

use super::{Files, digest};
use agui_store::{
    StoreError,
    files::{FileStream, StoredFile},
    host::StoreResult,
};

/// The bytes of a file that are in memory while it is read.
const PIECE_BYTES: u64 = 256 * 1024;
/// The objects that are deleted at once, before the store is asked for more.
const MAX_DELETED_OBJECTS: usize = 200;
const DELETED_AT_ONCE: usize = 8;
/// The failed deletions of a sweep after which the object store counts as down.
const MAX_KEPT_OBJECTS: usize = 3 * MAX_DELETED_OBJECTS;

impl Files {
    /// Reads the bytes of a file, or returns `None` if it was deleted.
    pub async fn bytes(&self, file: &StoredFile) -> StoreResult<Option<Bytes>> {
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

    /// Reads a part of the bytes of a file, piece by piece, or returns `None` if it was deleted.
    /// The first piece of a database is read at once, so that its error comes before the stream.
    pub async fn stream(
        &self,
        file: &StoredFile,
        range: Range<u64>,
    ) -> StoreResult<Option<FileStream>> {
        if let Some(key) = &file.object_key {
            let objects = self.0.objects.as_ref().ok_or_else(|| {
                StoreError::Failed(
                    "the bytes of a file are at an object store: set [files] url".into(),
                )
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

    /// Deletes the objects of deleted files. If the object store does not respond, they stay noted.
    pub async fn delete_objects(&self) -> StoreResult<()> {
        let Some(objects) = &self.0.objects else { return Ok(()) };
        // Objects that cannot be deleted do not delay the others.
        let (mut kept, mut result) = (HashSet::new(), Ok(()));
        loop {
            let mut keys = self.store()?.deleted_objects(MAX_DELETED_OBJECTS + kept.len()).await?;
            keys.retain(|key| !kept.contains(key));
            if keys.is_empty() || kept.len() >= MAX_KEPT_OBJECTS {
                return result;
            }
            let delete = async |key: String| (objects.delete(&key).await, key);
            let tried: Vec<_> =
                stream::iter(keys).map(delete).buffer_unordered(DELETED_AT_ONCE).collect().await;
            let mut deleted = Vec::new();
            for (outcome, key) in tried {
                match outcome {
                    Ok(()) => deleted.push(key),
                    Err(error) => {
                        kept.insert(key);
                        result = Err(error);
                    }
                }
            }
            self.store()?.forget_objects(&deleted).await?;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use async_trait::async_trait;

    use super::*;
    use crate::files::{FileOptions, FilesInner, Upload};
    use agui_store::{SqliteStore, files::FileObjects};

    /// Deletes each object but one.
    #[derive(Debug)]
    struct Stubborn(parking_lot::Mutex<Option<String>>);

    #[async_trait]
    impl FileObjects for Stubborn {
        async fn write(&self, key: &str, _bytes: Bytes) -> StoreResult<()> {
            self.0.lock().get_or_insert_with(|| key.to_owned());
            Ok(())
        }

        async fn read(&self, _key: &str, _range: Range<u64>) -> StoreResult<Option<FileStream>> {
            Ok(None)
        }

        async fn delete(&self, key: &str) -> StoreResult<()> {
            let is_kept = self.0.lock().as_deref() == Some(key);
            if is_kept { Err(StoreError::Unavailable("404".into())) } else { Ok(()) }
        }
    }

    #[tokio::test]
    async fn a_key_stays_noted_until_its_object_is_known_to_be_gone() {
        let folder = tempfile::tempdir().unwrap();
        let store = Arc::new(SqliteStore::open(&folder.path().join("a.db")).await.unwrap());
        let objects = Arc::new(Stubborn(parking_lot::Mutex::default()));
        let files = Files(Arc::new(FilesInner {
            store: store.clone(),
            options: FileOptions::default(),
            objects: Some(objects.clone()),
            secret: tokio::sync::OnceCell::new(),
        }));
        for bytes in [&b"a"[..], b"b", b"c"] {
            let upload = Upload {
                owner: "key:ann",
                bytes: bytes.into(),
                media_type: "text/plain",
                name: None,
            };
            files.put(upload).await.unwrap();
        }
        let kept = objects.0.lock().clone().unwrap();
        agui_store::Store::delete_all(&*store, "key:ann").await.unwrap();
        assert!(files.delete_objects().await.is_err());
        assert_eq!(files.store().unwrap().deleted_objects(9).await.unwrap(), [kept]);
        *objects.0.lock() = Some("another".to_owned());
        files.delete_objects().await.unwrap();
        assert!(files.store().unwrap().deleted_objects(9).await.unwrap().is_empty());
    }
}
