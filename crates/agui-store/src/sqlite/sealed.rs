//! Sealed values in SQLite.

use async_trait::async_trait;
use rusqlite::{Connection, named_params};

use super::{SqliteStore, reader::all, writer::Tx};
use crate::{
    StoreResult,
    read_permits::ReadKind,
    sealed::{ExpectedValue, SealedStore, SealedValue},
};

const SEALED: &str =
    "SELECT name, value, version, until FROM agui_sealed WHERE owner = ? ORDER BY name";
const INSERT: &str = "
    INSERT INTO agui_sealed (owner, name, value, version, until) VALUES (:owner, :name, :value, :version, :until)
    ON CONFLICT DO NOTHING";
const REPLACE: &str = "
    INSERT OR REPLACE INTO agui_sealed (owner, name, value, version, until)
    VALUES (:owner, :name, :value, :version, :until)";
const UPDATE: &str = "
    UPDATE agui_sealed SET value = :value, version = :version, until = :until
    WHERE owner = :owner AND name = :name AND version = :expected";
const DELETE: &str = "
    DELETE FROM agui_sealed
    WHERE owner = ?1 AND name = COALESCE(?2, name) AND version = COALESCE(?3, version)";

#[async_trait]
impl SealedStore for SqliteStore {
    async fn sealed(&self, owner: &str) -> StoreResult<Vec<SealedValue>> {
        let by = owner.to_owned();
        let list = move |conn: &Connection| {
            all(conn, SEALED, [by], |row| {
                Ok(SealedValue {
                    name: row.get(0)?,
                    value: row.get(1)?,
                    version: row.get(2)?,
                    until: row.get(3)?,
                })
            })
        };
        self.readers.read(ReadKind::Page, owner, list).await
    }

    async fn put_sealed(
        &self,
        owner: &str,
        value: &SealedValue,
        expected: ExpectedValue,
    ) -> StoreResult<bool> {
        let by = owner;
        let owner = owner.to_owned();
        let new = value.clone();
        let put = move |tx: &mut Tx<'_>| {
            let SealedValue { name, value, version, until } = &new;
            let sql = match expected {
                ExpectedValue::Absent => INSERT,
                ExpectedValue::Any => REPLACE,
                ExpectedValue::Version(expected) => {
                    let params = named_params! {
                        ":owner": owner, ":name": name, ":value": value, ":version": version, ":until": until,
                        ":expected": expected,
                    };
                    return Ok(tx.execute(UPDATE, params)? > 0);
                }
            };
            let params = named_params! {
                ":owner": owner, ":name": name, ":value": value, ":version": version, ":until": until,
            };
            Ok(tx.execute(sql, params)? > 0)
        };
        self.writer.write(by, put).await
    }

    async fn delete_sealed(
        &self,
        owner: &str,
        name: Option<&str>,
        version: Option<i64>,
    ) -> StoreResult<u64> {
        let by = owner;
        let owner = owner.to_owned();
        let name = name.map(str::to_owned);
        self.writer
            .write(by, move |tx| Ok(tx.execute(DELETE, (&owner, &name, version))? as u64))
            .await
    }
}
