//! Identifiers as database keys.
//!
//! An identifier is any text, but Postgres keeps no NUL and an index takes no megabytes. A key is the identifier
//! itself when it is short and plain, so that people can read the tables; otherwise it is `#` and the
//! identifier's SHA-256, and the whole identifier is kept beside it as JSON. What begins with `#` is never
//! plain, so no identifier looks like the hash of another.

use std::{borrow::Cow, fmt::Write as _};

use sha2::{Digest as _, Sha256};

use super::error::Fault;

/// The longest plain key, in bytes: a third of what fits into an index entry of Postgres, which may hold two.
const LONGEST: usize = 200;

/// The key of nobody, as an owner. No identifier has it.
const NOBODY: &str = "#";

/// An identifier as it is stored.
#[derive(Debug)]
pub(super) struct Name {
    pub(super) key: String,
    /// The identifier in JSON, when the key is not it.
    pub(super) full: Option<String>,
}

impl Name {
    pub(super) fn new(id: &str) -> Self {
        let key = key(id);
        let full = match &key {
            Cow::Borrowed(_) => None,
            Cow::Owned(_) => Some(serde_json::Value::from(id).to_string()),
        };
        Self { key: key.into_owned(), full }
    }

    pub(super) fn owner(owner: Option<&str>) -> Self {
        owner.map_or_else(|| Self { key: NOBODY.to_owned(), full: None }, Self::new)
    }
}

/// The key of an identifier: borrowed when it is the identifier.
pub(super) fn key(id: &str) -> Cow<'_, str> {
    if id.len() <= LONGEST && !id.starts_with('#') && !id.contains('\0') {
        return Cow::Borrowed(id);
    }
    let mut key = String::with_capacity(65);
    key.push('#');
    for byte in Sha256::digest(id) {
        // Writing to a string does not fail.
        let _ = write!(key, "{byte:02x}");
    }
    Cow::Owned(key)
}

/// The key of an owner.
pub(super) fn owner_key(owner: Option<&str>) -> Cow<'_, str> {
    owner.map_or(Cow::Borrowed(NOBODY), key)
}

/// The identifier that was stored.
pub(super) fn identifier(key: String, full: Option<String>) -> Result<String, Fault> {
    full.map_or(Ok(key), |json| serde_json::from_str(&json).map_err(Fault::unreadable))
}

/// The owner that was stored.
pub(super) fn owner(key: String, full: Option<String>) -> Result<Option<String>, Fault> {
    if key == NOBODY { Ok(None) } else { identifier(key, full).map(Some) }
}

/// A name that is no key, in one column: as it is, or as JSON when it is not plain.
pub(super) fn text(name: &str) -> String {
    if name.contains('\0') || name.starts_with('"') {
        serde_json::Value::from(name).to_string()
    } else {
        name.to_owned()
    }
}

/// The name that [`text`] stored.
pub(super) fn from_text(stored: String) -> Result<String, Fault> {
    if stored.starts_with('"') { serde_json::from_str(&stored).map_err(Fault::unreadable) } else { Ok(stored) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_identifier_comes_back_and_has_a_key_of_its_own() {
        let long = "x".repeat(1_000_000);
        let hashed = key(&long).into_owned();
        let ids = ["", "a", "é", "#", "#x", "a\0b", "\0", "\"q\"", &"y".repeat(200), &"y".repeat(201), &long, &hashed];
        let mut keys = std::collections::HashSet::new();
        for id in ids {
            let name = Name::new(id);
            assert!(name.key.len() <= 200 && !name.key.contains('\0'), "{id:?}");
            assert!(keys.insert(name.key.clone()), "{id:?}");
            assert_eq!(identifier(name.key, name.full).unwrap(), id);
            assert_eq!(from_text(text(id)).unwrap(), id);
            assert!(!text(id).contains('\0'));
            let stored = Name::owner(Some(id));
            assert_eq!(owner(stored.key, stored.full).unwrap().as_deref(), Some(id));
        }
        assert!(keys.insert(NOBODY.to_owned()), "nobody is nobody's identifier");
    }
}
