//! Small secrets of owners, which the caller has sealed: the [`SealedStore`] trait, its arguments
//! and results.

use async_trait::async_trait;

use super::{Millis, StoreResult};

/// Keeps the sealed values of a [`Store`](super::Store). A value belongs to an owner and has a name.
#[async_trait]
pub trait SealedStore: Send + Sync {
    /// Reads all values of an owner, which are few.
    async fn sealed(&self, owner: &str) -> StoreResult<Vec<SealedValue>>;

    /// Stores a value if the stored one is as expected. Returns whether the value was stored.
    async fn put_sealed(
        &self,
        owner: &str,
        value: &SealedValue,
        expected: ExpectedValue,
    ) -> StoreResult<bool>;

    /// Deletes the value of a name, or all values of the owner. With a `version`, only that version
    /// is deleted. Returns the number of values.
    async fn delete_sealed(
        &self,
        owner: &str,
        name: Option<&str>,
        version: Option<i64>,
    ) -> StoreResult<u64>;
}

/// A sealed value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SealedValue {
    pub name: String,
    pub value: Vec<u8>,
    /// A random version: two writes of a name never have the same one.
    pub version: i64,
    /// The time at which it is swept; `None` if it stays.
    pub until: Option<Millis>,
}

/// The value that a write replaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExpectedValue {
    Absent,
    Version(i64),
    Any,
}

impl SealedValue {
    /// Returns a new value, with a version of its own.
    pub fn new(name: String, value: Vec<u8>, until: Option<Millis>) -> Self {
        let (random, _) = uuid::Uuid::new_v4().as_u64_pair();
        Self { name, value, version: (random >> 1).cast_signed(), until }
    }
}
