//! Sealed values in memory.

use async_trait::async_trait;

use super::MemoryStore;
use crate::{
    StoreResult,
    sealed::{ExpectedValue, SealedStore, SealedValue},
};

#[async_trait]
impl SealedStore for MemoryStore {
    async fn sealed(&self, owner: &str) -> StoreResult<Vec<SealedValue>> {
        Ok(self.0.lock().sealed.get(owner).cloned().unwrap_or_default())
    }

    async fn put_sealed(
        &self,
        owner: &str,
        value: &SealedValue,
        expected: ExpectedValue,
    ) -> StoreResult<bool> {
        let mut tables = self.0.lock();
        let values = tables.sealed.entry(owner.to_owned()).or_default();
        let at = values.binary_search_by(|other| other.name.cmp(&value.name));
        match (at, expected) {
            (Ok(at), ExpectedValue::Version(version)) if values[at].version == version => {
                values[at] = value.clone()
            }
            (Ok(at), ExpectedValue::Any) => values[at] = value.clone(),
            (Err(at), ExpectedValue::Absent | ExpectedValue::Any) => {
                values.insert(at, value.clone())
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    async fn delete_sealed(
        &self,
        owner: &str,
        name: Option<&str>,
        version: Option<i64>,
    ) -> StoreResult<u64> {
        let mut tables = self.0.lock();
        let Some(values) = tables.sealed.get_mut(owner) else { return Ok(0) };
        let before = values.len();
        let is_meant = |value: &SealedValue| {
            name.is_none_or(|name| value.name == name)
                && version.is_none_or(|version| value.version == version)
        };
        values.retain(|value| !is_meant(value));
        Ok((before - values.len()) as u64)
    }
}
