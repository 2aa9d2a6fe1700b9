//! Files in Postgres. Each chunk is a statement of its own.

use std::ops::Range;

use async_trait::async_trait;
use bytes::Bytes;
use sqlx::{Row as _, postgres::PgRow};

use super::{
    PostgresStore,
    file_rows::{MAX_DELETED_FILES, delete_files, file_sums, sums},
    pool::Operation,
    reader::{self, BEGIN_SNAPSHOT, parse},
};
use crate::{
    Millis, StoreError, StoreResult,
    file_chunks::{FilePart, chunks},
    files::{
        ALL_OWNERS, DeletedFile, FileDeletion, FileStore, NewFile, PutFile, SecretName, StoredFile,
        UPLOAD_LIMIT, new_secret,
    },
    read_permits::{ReadKind, SERVER},
    rows,
};
use agui_base::text::{from_hex, hex};

/// Serializes the ends of uploads, so that only one of concurrent uploads of the same bytes is
/// shown. The first number is arbitrary.
const LOCK_OWNER: &str = "SELECT pg_advisory_xact_lock(470212, hashtext($1))";
/// A file that its owner uploads again is kept as long as a new one.
const FIND_SAME: &str = "
    UPDATE agui_files SET unused_since = CASE WHEN unused_since < $3 THEN $3 ELSE unused_since END
    WHERE owner = $1 AND digest = $2 AND stored RETURNING *";
/// Makes concurrent uploads see each other's bytes. The transaction with the lock runs three short
/// statements.
const LOCKED_SUMS: &str = "SELECT files, bytes FROM agui_file_sums WHERE owner = $1 FOR UPDATE";
const RESERVE: &str = include_str!("sql/reserve_file.sql");
const INSERT_CHUNK: &str = "
    INSERT INTO agui_file_chunks (file, number, digest, body)
    SELECT number, $2, $3, $4 FROM agui_files WHERE number = $1 AND NOT stored RETURNING number";
const SHOW: &str = "UPDATE agui_files SET stored = TRUE WHERE number = $1 RETURNING number";

const FILE: &str =
    "SELECT * FROM agui_files WHERE id = $1 AND owner = COALESCE($2, owner) AND stored";
const FILES: &str = "
    SELECT * FROM agui_files WHERE owner = $1 AND stored AND number < $2 ORDER BY number DESC LIMIT $3";
const CHUNKS: &str = "
    SELECT number, digest, body FROM agui_file_chunks WHERE file = $1 AND number BETWEEN $2 AND $3 ORDER BY number";

const DELETE_FILE: &str = include_str!("sql/delete_file.sql");
const KEEP_USED: &str = "
    UPDATE agui_files AS f SET unused_since = NULL
    WHERE unused_since < $1 AND EXISTS (SELECT 1 FROM agui_file_uses AS u WHERE u.file = f.number)";
const UNUSED: &str = include_str!("sql/unused_files.sql");

const SET_SECRET: &str =
    "INSERT INTO agui_secrets (name, value) VALUES ($1, $2) ON CONFLICT DO NOTHING";
const REPLACE_SECRET: &str = "UPDATE agui_secrets SET value = $2 WHERE name = $1";
const DELETED_OBJECTS: &str = "SELECT object_key FROM agui_deleted_objects LIMIT $1";
const FORGET_OBJECTS: &str = "DELETE FROM agui_deleted_objects WHERE object_key = ANY($1::text[])";
const SECRET: &str = "SELECT value FROM agui_secrets WHERE name = $1";

#[async_trait]
impl FileStore for PostgresStore {
    async fn put(&self, file: &NewFile<'_>) -> StoreResult<PutFile> {
        let reserved = self.reserve(file).await?;
        let PutFile::Stored(reserved) = reserved else { return Ok(reserved) };
        let number = reserved.number;
        let written = self.write_bytes(reserved, file).await;
        if !matches!(written, Ok(PutFile::Stored(_))) {
            // Otherwise the next sweep deletes it.
            let deleted = delete_files(&self.pool, &[number]).await;
            deleted.unwrap_or_else(|error| {
                tracing::debug!(?error, "an interrupted upload could not be deleted")
            });
        }
        written
    }

    async fn file(&self, owner: Option<&str>, id: &str) -> StoreResult<Option<StoredFile>> {
        reader::one(
            &self.pool,
            owner.unwrap_or(SERVER),
            sqlx::query(FILE).bind(id).bind(owner),
            rows::file,
        )
        .await
    }

    async fn file_bytes(&self, file: &StoredFile, range: Range<u64>) -> StoreResult<Option<Bytes>> {
        let mut part = FilePart::new(file, &range);
        let (first, last) = part.numbers();
        let mut operation = self.pool.read(part.read_kind(), &file.owner).await?;
        operation.begin(BEGIN_SNAPSHOT).await?;
        let found = operation.first(sqlx::query(FILE).bind(&file.id).bind(&*file.owner)).await?;
        let chunks =
            operation.all(sqlx::query(CHUNKS).bind(file.number).bind(first).bind(last)).await?;
        operation.commit().await?;
        if found.is_none() {
            return Ok(None);
        }
        parse(operation, move || {
            chunks.iter().try_for_each(|row| part.push(row))?;
            part.into_bytes().map(Some)
        })
        .await
    }

    async fn files(
        &self,
        owner: &str,
        before: Option<i64>,
        limit: usize,
    ) -> StoreResult<Vec<StoredFile>> {
        let select =
            sqlx::query(FILES).bind(owner).bind(before.unwrap_or(i64::MAX)).bind(limit as i64);
        let mut operation = self.pool.read(ReadKind::Page, owner).await?;
        operation.all(select).await?.iter().map(rows::file).collect()
    }

    async fn delete_file(
        &self,
        owner: &str,
        id: &str,
        deletion: FileDeletion,
    ) -> StoreResult<DeletedFile> {
        let delete = sqlx::query(DELETE_FILE)
            .bind(owner)
            .bind(id)
            .bind(deletion == FileDeletion::EvenIfUsed);
        let Some(row) = self.pool.first(delete).await? else { return Ok(DeletedFile::Unknown) };
        let (uses, is_deleted): (i64, bool) = (row.try_get(0)?, row.try_get(1)?);
        Ok(if is_deleted { DeletedFile::Deleted } else { DeletedFile::Used(uses.cast_unsigned()) })
    }

    async fn sweep_files(&self, unused_before: Option<Millis>, now: Millis) -> StoreResult<u64> {
        if let Some(unused_before) = unused_before {
            self.pool.all(sqlx::query(KEEP_USED).bind(unused_before)).await?;
        }
        let mut swept = 0;
        loop {
            let delete =
                sqlx::query(UNUSED).bind(unused_before).bind(now.saturating_sub(UPLOAD_LIMIT));
            let deleted = self.pool.all(delete.bind(MAX_DELETED_FILES)).await?;
            let stored = |row: &PgRow| Ok(u64::from(row.try_get::<bool, _>(0)?));
            swept += deleted.iter().map(stored).sum::<StoreResult<u64>>()?;
            if (deleted.len() as i64) < MAX_DELETED_FILES {
                return Ok(swept);
            }
        }
    }

    async fn secret(&self, name: SecretName) -> StoreResult<[u8; 32]> {
        let name = name.as_str();
        self.pool.all(sqlx::query(SET_SECRET).bind(name).bind(hex(&new_secret()))).await?;
        let row = self.pool.first(sqlx::query(SECRET).bind(name)).await?;
        let found = row
            .map(|row| Ok::<_, StoreError>(from_hex(rows::text(&row, "value")?)))
            .transpose()?
            .flatten();
        if let Some(secret) = found {
            return Ok(secret);
        }
        // The secret is damaged: earlier URLs end, and other servers get new ids.
        let new = new_secret();
        self.pool.all(sqlx::query(REPLACE_SECRET).bind(name).bind(hex(&new))).await?;
        Ok(new)
    }

    async fn deleted_objects(&self, limit: usize) -> StoreResult<Vec<String>> {
        let found = self.pool.all(sqlx::query(DELETED_OBJECTS).bind(limit as i64)).await?;
        found.iter().map(|row| Ok(row.try_get(0)?)).collect()
    }

    async fn forget_objects(&self, keys: &[String]) -> StoreResult<()> {
        self.pool.all(sqlx::query(FORGET_OBJECTS).bind(keys)).await.map(drop)
    }
}

impl PostgresStore {
    /// Finds the file with the same bytes, or reserves space for a new one.
    async fn reserve(&self, file: &NewFile<'_>) -> StoreResult<PutFile> {
        let mut operation = self.pool.upload(file.owner).await?;
        if let Some(same) = find_same(&mut operation, file).await? {
            return Ok(PutFile::Existed(same));
        }
        operation.begin("BEGIN").await?;
        let reserved = reserve_new(&mut operation, file).await?;
        operation.commit().await?;
        Ok(reserved)
    }

    async fn write_bytes(&self, reserved: StoredFile, file: &NewFile<'_>) -> StoreResult<PutFile> {
        let deleted = || StoreError::Unavailable("the upload took too long, or was deleted".into());
        if let Some((objects, key)) = file.objects.zip(reserved.object_key.as_deref()) {
            objects.write(key, file.bytes.clone()).await?;
        }
        for chunk in chunks(&file.bytes).take_while(|_| file.objects.is_none()) {
            let insert = sqlx::query(INSERT_CHUNK)
                .bind(reserved.number)
                .bind(chunk.number)
                .bind(chunk.digest);
            let mut operation = self.pool.upload(file.owner).await?;
            operation.first(insert.bind(&chunk.body[..])).await?.ok_or_else(deleted)?;
        }
        let mut operation = self.pool.upload(file.owner).await?;
        operation.begin("BEGIN").await?;
        operation.all(sqlx::query(LOCK_OWNER).bind(file.owner)).await?;
        // Another upload of the same bytes was faster.
        let same = find_same(&mut operation, file).await?;
        if same.is_none() {
            operation.first(sqlx::query(SHOW).bind(reserved.number)).await?.ok_or_else(deleted)?;
        }
        operation.commit().await?;
        Ok(same.map_or(PutFile::Stored(reserved), PutFile::Existed))
    }
}

async fn find_same(
    operation: &mut Operation,
    file: &NewFile<'_>,
) -> StoreResult<Option<StoredFile>> {
    let find = sqlx::query(FIND_SAME).bind(file.owner).bind(file.digest).bind(file.now);
    operation.first(find).await?.map(|row| rows::file(&row)).transpose()
}

async fn reserve_new(operation: &mut Operation, file: &NewFile<'_>) -> StoreResult<PutFile> {
    let new = StoredFile::new(0, file);
    let of_all = sums(operation.first(sqlx::query(LOCKED_SUMS).bind(ALL_OWNERS)).await?)?;
    // A statement of its own: the one above would not see a row that is inserted while it waits for
    // the lock.
    let of_owner = file_sums(operation, file.owner).await?;
    if let Some(limit) = file.limits.exceeded_by(new.bytes, of_owner, of_all) {
        return Ok(PutFile::Full(limit));
    }
    let (width, height) =
        new.size.map(|size| (i64::from(size.width), i64::from(size.height))).unzip();
    let insert = sqlx::query(RESERVE)
        .bind(&*new.owner)
        .bind(&new.id)
        .bind(&new.digest)
        .bind(&new.media_type);
    let insert = insert.bind(&new.name).bind(new.bytes.cast_signed()).bind(width).bind(height);
    let row = operation.first(insert.bind(new.created_at).bind(&new.object_key)).await?;
    let number =
        row.ok_or_else(|| StoreError::Failed("a file has no number".into()))?.try_get(0)?;
    Ok(PutFile::Stored(StoredFile { number, ..new }))
}
