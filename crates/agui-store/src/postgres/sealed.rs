//! Sealed values in Postgres.

use async_trait::async_trait;
use sqlx::{Row as _, postgres::PgRow};

use super::PostgresStore;
use crate::{
    StoreResult,
    read_permits::ReadKind,
    sealed::{ExpectedValue, SealedStore, SealedValue},
};

const SEALED: &str =
    "SELECT name, value, version, until FROM agui_sealed WHERE owner = $1 ORDER BY name";
const INSERT: &str = "
    INSERT INTO agui_sealed (owner, name, value, version, until) VALUES ($1, $2, $3, $4, $5)
    ON CONFLICT DO NOTHING RETURNING version";
const REPLACE: &str = "
    INSERT INTO agui_sealed (owner, name, value, version, until) VALUES ($1, $2, $3, $4, $5)
    ON CONFLICT (owner, name) DO UPDATE
        SET value = EXCLUDED.value, version = EXCLUDED.version, until = EXCLUDED.until
    RETURNING version";
const UPDATE: &str = "
    UPDATE agui_sealed SET value = $3, version = $4, until = $5
    WHERE owner = $1 AND name = $2 AND version = $6 RETURNING version";
const DELETE: &str = "
    DELETE FROM agui_sealed
    WHERE owner = $1 AND name = COALESCE($2, name) AND version = COALESCE($3, version) RETURNING version";

#[async_trait]
impl SealedStore for PostgresStore {
    async fn sealed(&self, owner: &str) -> StoreResult<Vec<SealedValue>> {
        let value = |row: &PgRow| {
            let (name, value) = (row.try_get(0)?, row.try_get(1)?);
            Ok(SealedValue { name, value, version: row.try_get(2)?, until: row.try_get(3)? })
        };
        let mut operation = self.pool.read(ReadKind::Page, owner).await?;
        operation.all(sqlx::query(SEALED).bind(owner)).await?.iter().map(value).collect()
    }

    async fn put_sealed(
        &self,
        owner: &str,
        value: &SealedValue,
        expected: ExpectedValue,
    ) -> StoreResult<bool> {
        let put = match expected {
            ExpectedValue::Absent => sqlx::query(INSERT),
            ExpectedValue::Any => sqlx::query(REPLACE),
            ExpectedValue::Version(_) => sqlx::query(UPDATE),
        };
        let put = put
            .bind(owner)
            .bind(&value.name)
            .bind(&value.value)
            .bind(value.version)
            .bind(value.until);
        let put =
            if let ExpectedValue::Version(version) = expected { put.bind(version) } else { put };
        Ok(self.pool.first(put).await?.is_some())
    }

    async fn delete_sealed(
        &self,
        owner: &str,
        name: Option<&str>,
        version: Option<i64>,
    ) -> StoreResult<u64> {
        Ok(self.pool.all(sqlx::query(DELETE).bind(owner).bind(name).bind(version)).await?.len()
            as u64)
    }
}
