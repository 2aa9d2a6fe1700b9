//! JSON Patch (RFC 6902), the form in which state and activities change.

mod apply;

pub use apply::{Changes, PatchFault, apply};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A patch: operations applied in order, all of them or none.
pub type JsonPatch = Vec<PatchOperation>;

/// One operation of a patch. Every `path` and `from` is a JSON Pointer (RFC 6901), such as `/plan/steps/0`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "lowercase")]
pub enum PatchOperation {
    /// Inserts a value.
    Add {
        /// Where.
        path: String,
        /// What; `null` is a value.
        value: Value,
    },
    /// Removes a value.
    Remove {
        /// Which.
        path: String,
    },
    /// Replaces a value that exists.
    Replace {
        /// Where.
        path: String,
        /// With what; `null` is a value.
        value: Value,
    },
    /// Moves a value.
    Move {
        /// From where.
        from: String,
        /// To where.
        path: String,
    },
    /// Copies a value.
    Copy {
        /// From where.
        from: String,
        /// To where.
        path: String,
    },
    /// Fails the patch unless the value is the one named.
    Test {
        /// Where.
        path: String,
        /// What it has to be.
        value: Value,
    },
}

impl PatchOperation {
    /// Inserts `value` at `path`.
    pub fn add(path: impl Into<String>, value: impl Into<Value>) -> Self {
        Self::Add { path: path.into(), value: value.into() }
    }

    /// Removes what is at `path`.
    pub fn remove(path: impl Into<String>) -> Self {
        Self::Remove { path: path.into() }
    }

    /// Replaces what is at `path` with `value`.
    pub fn replace(path: impl Into<String>, value: impl Into<Value>) -> Self {
        Self::Replace { path: path.into(), value: value.into() }
    }

    /// The operation's pointers: its path, and where it takes the value from.
    pub fn pointers(&self) -> (&str, Option<&str>) {
        match self {
            Self::Add { path, .. } | Self::Remove { path } | Self::Replace { path, .. } | Self::Test { path, .. } => {
                (path, None)
            }
            Self::Move { from, path } | Self::Copy { from, path } => (path, Some(from)),
        }
    }
}

/// Whether a text is a JSON Pointer: empty, or `/`-prefixed tokens in which `~` is followed by `0` or `1`.
///
/// ```
/// use agui_server::protocol::patch::is_pointer;
/// assert!(is_pointer("") && is_pointer("/a/0/~0b~1"));
/// assert!(!is_pointer("a") && !is_pointer("/~2") && !is_pointer("/a~"));
/// ```
pub fn is_pointer(text: &str) -> bool {
    if text.is_empty() {
        return true;
    }
    if !text.starts_with('/') {
        return false;
    }
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        if byte == b'~' && !matches!(bytes.next(), Some(b'0' | b'1')) {
            return false;
        }
    }
    true
}
