//! JSON Patch (RFC 6902): changes of states and activities. [`apply`] applies one to a document.

mod apply;

pub use apply::{AppliedPatch, PatchError, apply};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Operations that are applied in order, all or none.
pub type JsonPatch = Vec<PatchOperation>;

/// One operation of a patch. `path` and `from` are JSON Pointers (RFC 6901), such as `/plan/steps/0`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "lowercase")]
pub enum PatchOperation {
    /// Inserts a value.
    Add {
        /// The place.
        path: String,
        /// The value; `null` is data.
        value: Value,
    },
    /// Removes a value.
    Remove {
        /// The place.
        path: String,
    },
    /// Replaces an existing value.
    Replace {
        /// The place.
        path: String,
        /// The new value; `null` is data.
        value: Value,
    },
    /// Moves a value.
    Move {
        /// The place it is taken from.
        from: String,
        /// The place it is put to.
        path: String,
    },
    /// Copies a value.
    Copy {
        /// The place it is taken from.
        from: String,
        /// The place it is put to.
        path: String,
    },
    /// Fails the patch if the value at the place differs.
    Test {
        /// The place.
        path: String,
        /// The expected value.
        value: Value,
    },
}

impl PatchOperation {
    /// Creates an operation that inserts `value` at `path`.
    pub fn add(path: impl Into<String>, value: impl Into<Value>) -> Self {
        Self::Add { path: path.into(), value: value.into() }
    }

    /// Creates an operation that removes the value at `path`.
    pub fn remove(path: impl Into<String>) -> Self {
        Self::Remove { path: path.into() }
    }

    /// Creates an operation that replaces the value at `path`.
    pub fn replace(path: impl Into<String>, value: impl Into<Value>) -> Self {
        Self::Replace { path: path.into(), value: value.into() }
    }

    /// Returns `path`, and `from` if the operation has it.
    pub fn pointers(&self) -> (&str, Option<&str>) {
        match self {
            Self::Add { path, .. } | Self::Remove { path } | Self::Replace { path, .. } | Self::Test { path, .. } => {
                (path, None)
            }
            Self::Move { from, path } | Self::Copy { from, path } => (path, Some(from)),
        }
    }
}

/// Returns whether a text is a JSON Pointer: empty, or tokens that begin with `/`, in which `0` or `1` follows each `~`.
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
