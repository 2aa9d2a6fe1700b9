//! Files in SQLite. Each chunk is a transaction of its own after all waiting operations, so a run
//! waits for at most one chunk.
//!
//! A deleted file is first *unlinked*, as a thread is ([`super::remove`]); its chunks are purged in steps.

use std::ops::Range;

use async_trait::async_trait;
use bytes::Bytes;
use rusqlite::{Connection, named_params};

use super::{
    SqliteStore,
    file_rows::{file_sums, purge_step},
    pending::JobOwner,
    reader::{all, one},
    remove::left_to_sweep,
    truncate::{self, ConcurrentReads},
    writer::{JobKind, Tx},
};
use crate::{
    Millis, StoreError, StoreResult,
    file_chunks::{FilePart, chunks},
    files::{
        ALL_OWNERS, DeletedFile, FileDeletion, FileLimits, FileStore, NewFile, PutFile, SecretName,
        StoredFile, UPLOAD_LIMIT, new_secret,
    },
    read_permits::{ReadKind, SERVER},
    rows,
};
use agui_base::text::{from_hex, hex};

const FIND_SAME: &str =
    "SELECT * FROM agui_files WHERE owner = :owner AND digest = :digest AND stored = 1";
const KEEP: &str =
    "UPDATE agui_files SET unused_since = MAX(unused_since, :now) WHERE number = :number";
const RESERVE: &str = include_str!("sql/reserve_file.sql");
const INSERT_CHUNK: &str = "
    INSERT INTO agui_file_chunks (file, number, digest, body)
    SELECT number, :chunk, :digest, :body FROM agui_files WHERE number = :number AND owner <> '' AND stored = 0";
/// Writes nothing if another upload of the same bytes was faster.
const SHOW: &str = "
    UPDATE agui_files AS f SET stored = 1 WHERE number = ?1 AND owner <> '' AND NOT EXISTS (
        SELECT 1 FROM agui_files AS other WHERE other.owner = f.owner AND other.digest = f.digest AND other.stored = 1)";

const FILE: &str = "SELECT * FROM agui_files WHERE id = ?1 AND owner = COALESCE(?2, owner) AND owner <> '' AND stored = 1";
const FILES: &str = "
    SELECT * FROM agui_files WHERE owner = ?1 AND owner <> '' AND stored = 1 AND number < ?2 ORDER BY number DESC LIMIT ?3";
const EXISTS: &str = "SELECT 1 FROM agui_files WHERE number = ? AND owner <> ''";
const CHUNKS: &str = "
    SELECT number, digest, body FROM agui_file_chunks WHERE file = ?1 AND number BETWEEN ?2 AND ?3 ORDER BY number";

/// Uses by unlinked threads do not count.
const USES: &str = "
    SELECT COUNT(*) FROM agui_file_uses AS u JOIN agui_threads AS t ON t.number = u.thread
    WHERE u.file = ? AND t.owner <> ''";
const UNLINK: &str = "
    UPDATE agui_files SET owner = '', id = number, digest = '', name = NULL, stored = 0, unused_since = NULL
    WHERE number = ? AND owner <> ''";
const UNLINK_UNUSED: &str = "
    UPDATE agui_files SET owner = '', id = number, digest = '', name = NULL, stored = 0, unused_since = NULL
    WHERE number IN (SELECT f.number FROM agui_files AS f WHERE f.unused_since < ?1 AND f.stored = 1
        AND NOT EXISTS (SELECT 1 FROM agui_file_uses AS u WHERE u.file = f.number) LIMIT ?2)";
const UNLINK_INTERRUPTED: &str = "
    UPDATE agui_files SET owner = '', id = number, digest = '', name = NULL, unused_since = NULL
    WHERE number IN (SELECT number FROM agui_files WHERE unused_since < ?1 AND stored = 0 LIMIT ?2)";
/// A file that lost one of its threads and has others.
const KEEP_USED: &str = "
    UPDATE agui_files SET unused_since = NULL
    WHERE unused_since < ?1 AND EXISTS (SELECT 1 FROM agui_file_uses AS u WHERE u.file = agui_files.number)";

const SET_SECRET: &str =
    "INSERT INTO agui_secrets (name, value) VALUES (?, ?) ON CONFLICT DO NOTHING";
const REPLACE_SECRET: &str = "UPDATE agui_secrets SET value = ?2 WHERE name = ?1";
const DELETED_OBJECTS: &str = "SELECT object_key FROM agui_deleted_objects LIMIT ?";
const FORGET_OBJECT: &str = "DELETE FROM agui_deleted_objects WHERE object_key = ?";
const SECRET: &str = "SELECT value FROM agui_secrets WHERE name = ?";

#[async_trait]
impl FileStore for SqliteStore {
    async fn put(&self, file: &NewFile<'_>) -> StoreResult<PutFile> {
        let (new, limits) = (StoredFile::new(0, file), file.limits);
        let reserved = self.writer.write(file.owner, move |tx| reserve(tx, &new, limits)).await?;
        let PutFile::Stored(reserved) = reserved else { return Ok(reserved) };
        let number = reserved.number;
        let written = self.write_bytes(reserved, file).await;
        if !matches!(written, Ok(PutFile::Stored(_))) {
            let unlink =
                move |tx: &mut Tx<'_>| tx.execute(UNLINK, [number]).and_then(|_| truncate::owe(tx));
            left_to_sweep(self.writer.run_for(file.owner.into(), 0, JobKind::Ending, unlink).await);
            self.purge_files(file.owner).await;
        }
        written
    }

    async fn file(&self, owner: Option<&str>, id: &str) -> StoreResult<Option<StoredFile>> {
        let (by, params) = (owner.unwrap_or(SERVER), (id.to_owned(), owner.map(str::to_owned)));
        self.readers
            .read(ReadKind::Page, by, move |conn| one(conn, FILE, params, |row| rows::file(row)))
            .await
    }

    async fn file_bytes(&self, file: &StoredFile, range: Range<u64>) -> StoreResult<Option<Bytes>> {
        let (mut part, number) = (FilePart::new(file, &range), file.number);
        let kind = part.read_kind();
        let read = move |conn: &Connection| {
            let tx = conn.unchecked_transaction()?;
            if !tx.prepare_cached(EXISTS)?.exists([number])? {
                return Ok(None);
            }
            let (first, last) = part.numbers();
            all(&tx, CHUNKS, (number, first, last), |row| part.push(row))?;
            part.into_bytes().map(Some)
        };
        self.readers.read(kind, &file.owner, read).await
    }

    async fn files(
        &self,
        owner: &str,
        before: Option<i64>,
        limit: usize,
    ) -> StoreResult<Vec<StoredFile>> {
        let params = (owner.to_owned(), before.unwrap_or(i64::MAX), limit as i64);
        self.readers
            .read(ReadKind::Page, owner, move |conn| {
                all(conn, FILES, params, |row| rows::file(row))
            })
            .await
    }

    async fn delete_file(
        &self,
        owner: &str,
        id: &str,
        deletion: FileDeletion,
    ) -> StoreResult<DeletedFile> {
        let params = (id.to_owned(), owner.to_owned());
        let unlink = move |tx: &mut Tx<'_>| {
            let number = one(tx.conn, FILE, (&params.0, &params.1), |row| {
                rows::number::<i64>(row, "number")
            })?;
            let Some(number) = number else { return Ok(DeletedFile::Unknown) };
            let uses =
                one(tx.conn, USES, [number], |row| Ok(row.get::<_, u64>(0)?))?.unwrap_or_default();
            if uses > 0 && deletion == FileDeletion::UnlessUsed {
                return Ok(DeletedFile::Used(uses));
            }
            tx.execute(UNLINK, [number])?;
            truncate::owe(tx)?;
            Ok(DeletedFile::Deleted)
        };
        let deleted = self.writer.run_for(owner.into(), 0, JobKind::Ending, unlink).await?;
        if deleted == DeletedFile::Deleted {
            self.purge_files(owner).await;
        }
        Ok(deleted)
    }

    async fn sweep_files(&self, unused_before: Option<Millis>, now: Millis) -> StoreResult<u64> {
        let mut swept = 0;
        if let Some(unused_before) = unused_before {
            self.writer
                .run(JobKind::Ending, move |tx| tx.execute(KEEP_USED, [unused_before]))
                .await?;
            swept = self.unlink(UNLINK_UNUSED, unused_before, u64::MAX).await?;
        }
        let interrupted =
            self.unlink(UNLINK_INTERRUPTED, now.saturating_sub(UPLOAD_LIMIT), u64::MAX).await?;
        if swept + interrupted > 0 {
            self.purge_files(SERVER).await;
        }
        Ok(swept)
    }

    async fn secret(&self, name: SecretName) -> StoreResult<[u8; 32]> {
        let name = name.as_str();
        let secret = move |tx: &mut Tx<'_>| {
            tx.execute(SET_SECRET, [name, &hex(&new_secret())])?;
            if let Some(found) =
                one(tx.conn, SECRET, [name], |row| Ok(from_hex(rows::text(row, "value")?)))?
                    .flatten()
            {
                return Ok(found);
            }
            // The secret is damaged: earlier URLs end, and other servers get new ids.
            let new = new_secret();
            tx.execute(REPLACE_SECRET, [name, &hex(&new)]).map(|_| new)
        };
        self.writer.write(JobOwner::Server, secret).await
    }

    async fn deleted_objects(&self, limit: usize) -> StoreResult<Vec<String>> {
        let select = move |conn: &Connection| {
            all(conn, DELETED_OBJECTS, [limit as i64], |row| Ok(row.get::<_, String>(0)?))
        };
        self.readers.read(ReadKind::Page, SERVER, select).await
    }

    async fn forget_objects(&self, keys: &[String]) -> StoreResult<()> {
        let keys = keys.to_vec();
        let forget = move |tx: &mut Tx<'_>| {
            keys.iter().try_for_each(|key| tx.execute(FORGET_OBJECT, [key]).map(drop))
        };
        self.writer.run(JobKind::Ending, forget).await
    }
}

impl SqliteStore {
    async fn write_bytes(&self, file: StoredFile, new: &NewFile<'_>) -> StoreResult<PutFile> {
        let (number, at_database) = (file.number, new.objects.is_none());
        if let Some((objects, key)) = new.objects.zip(file.object_key.as_deref()) {
            objects.write(key, new.bytes.clone()).await?;
        }
        for chunk in chunks(&new.bytes).take_while(|_| at_database) {
            let insert = move |tx: &mut Tx<'_>| {
                let params = named_params! {
                    ":number": number, ":chunk": chunk.number, ":digest": chunk.digest, ":body": &chunk.body[..],
                };
                Ok(tx.execute(INSERT_CHUNK, params)? > 0)
            };
            // The permit makes owners alternate.
            let _permit = self.upkeep.take(&new.owner.into(), 1).await;
            if !self.writer.run(JobKind::Upkeep, insert).await? {
                return Err(StoreError::Unavailable(
                    "the upload took too long, or was deleted".into(),
                ));
            }
        }
        let show = move |tx: &mut Tx<'_>| {
            if tx.execute(SHOW, [number])? > 0 {
                return Ok(PutFile::Stored(file.clone()));
            }
            let same = named_params! { ":owner": file.owner, ":digest": file.digest };
            let same = one(tx.conn, FIND_SAME, same, |row| rows::file(row))?;
            same.map(PutFile::Existed)
                .ok_or_else(|| StoreError::Unavailable("the upload was deleted".into()))
        };
        self.writer.write(new.owner, show).await
    }

    async fn purge_files(&self, owner: &str) {
        let purged = async {
            self.keep_up(JobKind::Purging, owner, purge_step).await?;
            self.truncate_log(ConcurrentReads::Proceed).await
        };
        left_to_sweep(purged.await);
    }
}

/// Finds the file with the same bytes, or reserves space for a new one.
fn reserve(tx: &Tx<'_>, new: &StoredFile, limits: FileLimits) -> StoreResult<PutFile> {
    let same = named_params! { ":owner": new.owner, ":digest": new.digest };
    if let Some(same) = one(tx.conn, FIND_SAME, same, |row| rows::file(row))? {
        tx.execute(KEEP, named_params! { ":number": same.number, ":now": new.created_at })?;
        return Ok(PutFile::Existed(same));
    }
    let [of_owner, of_all] = [file_sums(tx.conn, &new.owner)?, file_sums(tx.conn, ALL_OWNERS)?];
    if let Some(limit) = limits.exceeded_by(new.bytes, of_owner, of_all) {
        return Ok(PutFile::Full(limit));
    }
    tx.execute(
        RESERVE,
        named_params! {
            ":owner": new.owner, ":id": new.id, ":digest": new.digest, ":media_type": new.media_type, ":name": new.name,
            ":bytes": new.bytes, ":width": new.size.map(|size| size.width), ":height": new.size.map(|size| size.height),
            ":object_key": new.object_key, ":now": new.created_at,
        },
    )?;
    Ok(PutFile::Stored(StoredFile { number: tx.conn.last_insert_rowid(), ..new.clone() }))
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;
    use crate::{Store as _, files::FILE_OVERHEAD, now};

    const DAMAGES: [&str; 5] = [
        "DELETE FROM agui_file_chunks WHERE number = 1",
        "UPDATE agui_file_chunks SET body = zeroblob(262144) WHERE number = 1",
        "UPDATE agui_file_chunks SET body = 'text' WHERE number = 1",
        "UPDATE agui_file_chunks SET digest = 7 WHERE number = 1",
        "UPDATE agui_file_chunks SET number = 9 WHERE number = 1",
    ];

    fn new_file() -> NewFile<'static> {
        NewFile {
            owner: "key:ann",
            media_type: "image/png",
            name: None,
            bytes: vec![7; 600_000].into(),
            digest: "d",
            size: None,
            now: now(),
            limits: FileLimits::default(),
            objects: None,
        }
    }

    async fn count(store: &SqliteStore, table: &'static str) -> i64 {
        let count = move |conn: &Connection| {
            one(conn, &format!("SELECT COUNT(*) FROM {table}"), [], |row| Ok(row.get(0)?))
        };
        store.readers.read(ReadKind::Page, SERVER, count).await.unwrap().unwrap()
    }

    #[tokio::test]
    async fn damaged_bytes_are_an_error() {
        for damage in DAMAGES {
            let folder = tempfile::tempdir().unwrap();
            let store = SqliteStore::open(&folder.path().join("a.db")).await.unwrap();
            let PutFile::Stored(file) = store.put(&new_file()).await.unwrap() else { panic!() };
            assert!(store.damaged_rows().await.unwrap().is_empty());
            store.writer.write("", move |tx| tx.execute(damage, [])).await.unwrap();
            let error = store.file_bytes(&file, 0..file.bytes).await.unwrap_err();
            assert!(matches!(error, StoreError::Failed(_)), "{damage}");
            assert!(
                store.file_bytes(&file, 0..1000).await.unwrap().is_some(),
                "the first chunk is whole"
            );
            assert_eq!(
                store.damaged_rows().await.unwrap().is_empty(),
                damage.contains("SET number"),
                "{damage}"
            );
        }
    }

    #[tokio::test]
    async fn no_file_of_the_database_has_deleted_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(&folder.path().join("a.db")).await.unwrap();
        let bytes = b"secret ".repeat(90_000);
        let has_secret = || {
            let files = std::fs::read_dir(folder.path())
                .unwrap()
                .map(|entry| std::fs::read(entry.unwrap().path()).unwrap());
            files.into_iter().any(|file| memchr::memmem::find(&file, b"secret secret").is_some())
        };
        let PutFile::Stored(file) =
            store.put(&NewFile { bytes: bytes.into(), ..new_file() }).await.unwrap()
        else {
            panic!()
        };
        assert!(has_secret());
        store.delete_file("key:ann", &file.id, FileDeletion::UnlessUsed).await.unwrap();
        assert!(!has_secret());
        assert_eq!(count(&store, "agui_file_chunks").await, 0);
    }

    async fn put_tiny(store: &SqliteStore, owner: &str, name: Option<&str>, number: u32) {
        let digest = format!("{number:064}");
        let bytes = number.to_be_bytes().to_vec().into();
        let put = store
            .put(&NewFile { owner, name, bytes, digest: &digest, ..new_file() })
            .await
            .unwrap();
        assert!(matches!(put, PutFile::Stored(_)));
    }

    #[tokio::test]
    async fn an_upload_takes_no_longer_beside_many_files() {
        const FILES: &str = "
            WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100000)
            INSERT INTO agui_files (owner, id, digest, media_type, bytes, created_at, stored)
            SELECT 'key:ann', 'many ' || i, 'many ' || i, '', 1, 1, 1 FROM n";
        let folder = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(&folder.path().join("a.db")).await.unwrap();
        let quickest = async |numbers: Range<u32>| {
            let mut quickest = Duration::MAX;
            for number in numbers {
                let begun = Instant::now();
                put_tiny(&store, "key:ann", None, number).await;
                quickest = quickest.min(begun.elapsed());
            }
            quickest
        };
        let alone = quickest(0..20).await;
        store.writer.write("", move |tx| tx.execute(FILES, [])).await.unwrap();
        let beside_many = quickest(20..40).await;
        assert_eq!(store.stored_bytes(None).await.unwrap(), 100_160 + 100_040 * FILE_OVERHEAD);
        // To add them up takes ten times as long.
        assert!(beside_many < 4 * alone, "{alone:?}, and {beside_many:?} beside 100,000 files");
    }

    #[tokio::test]
    async fn a_file_counts_with_at_least_what_it_takes() {
        const SIZE: &str = "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size";
        let (long_owner, long_name) = (format!("jwt:{}", "o".repeat(120)), "🐈".repeat(200));
        for (owner, name) in [("key:ann", None), (&*long_owner, Some(&*long_name))] {
            let folder = tempfile::tempdir().unwrap();
            let store = SqliteStore::open(&folder.path().join("a.db")).await.unwrap();
            let size = async || {
                let size = |conn: &Connection| one(conn, SIZE, [], |row| Ok(row.get::<_, u64>(0)?));
                store.readers.read(ReadKind::Page, SERVER, size).await.unwrap().unwrap()
            };
            let before = size().await;
            for number in 0..1000 {
                put_tiny(&store, owner, name, number).await;
            }
            let (takes, counts) = (size().await - before, store.stored_bytes(None).await.unwrap());
            assert!(takes > 330_000 && takes <= counts, "{takes} bytes count {counts}");
        }
    }

    #[tokio::test]
    async fn an_interrupted_upload_is_hidden_and_swept() {
        let folder = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(&folder.path().join("a.db")).await.unwrap();
        let PutFile::Stored(file) = store.put(&new_file()).await.unwrap() else { panic!() };
        store
            .writer
            .write("", |tx| tx.execute("UPDATE agui_files SET stored = 0", []))
            .await
            .unwrap();
        assert_eq!(store.file(None, &file.id).await.unwrap(), None);
        store.sweep_files(None, now()).await.unwrap();
        assert_eq!(count(&store, "agui_file_chunks").await, 3);
        store.sweep_files(None, now() + 2 * UPLOAD_LIMIT).await.unwrap();
        assert_eq!(
            (count(&store, "agui_file_chunks").await, count(&store, "agui_files").await),
            (0, 0)
        );
    }
}
