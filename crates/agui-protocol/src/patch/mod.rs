//! JSON Patch (RFC 6902): changes of states and activities. `apply` applies one to a document.

mod apply;
mod pointer;
mod undo;

pub use apply::apply_within;
pub use apply::{PatchError, apply};
use serde::{Deserialize, Deserializer, Serialize, de::Error as _};
use serde_json::Value;
pub use undo::AppliedPatch;
use utoipa::ToSchema;

use super::JsonObject;

/// Operations that are applied in order, all or none.
pub type JsonPatch = Vec<PatchOperation>;

/// One operation of a patch.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[non_exhaustive]
pub struct PatchOperation {
    /// The operation.
    #[serde(flatten)]
    #[schema(inline)]
    pub kind: PatchKind,
    /// Members that RFC 6902 does not define. They have no effect, and AG-UI demands that they are kept.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    #[schema(ignore)]
    pub others: Option<Box<JsonObject>>,
}

/// The operations of RFC 6902. `path` and `from` are JSON Pointers (RFC 6901), such as `/plan/steps/0`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "op", rename_all = "lowercase")]
pub enum PatchKind {
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

impl PatchKind {
    /// Returns the members of an operation besides `op`; `None` for an `op` that RFC 6902 does not define.
    #[doc(hidden)]
    pub fn members(op: &str) -> Option<&'static [&'static str]> {
        Some(match op {
            "add" | "replace" | "test" => &["path", "value"],
            "remove" => &["path"],
            "move" | "copy" => &["from", "path"],
            _ => return None,
        })
    }
}

impl PatchOperation {
    /// Creates an operation that inserts `value` at `path`.
    pub fn add(path: impl Into<String>, value: impl Into<Value>) -> Self {
        PatchKind::Add { path: path.into(), value: value.into() }.into()
    }

    /// Creates an operation that removes the value at `path`.
    pub fn remove(path: impl Into<String>) -> Self {
        PatchKind::Remove { path: path.into() }.into()
    }

    /// Creates an operation that replaces the value at `path`.
    pub fn replace(path: impl Into<String>, value: impl Into<Value>) -> Self {
        PatchKind::Replace { path: path.into(), value: value.into() }.into()
    }

    /// Returns whether a document that is an object stays one.
    pub fn keeps_object(&self) -> bool {
        let (path, _) = self.pointers();
        !path.is_empty()
            || match &self.kind {
                PatchKind::Add { value, .. } | PatchKind::Replace { value, .. } => {
                    value.is_object()
                }
                PatchKind::Remove { .. } | PatchKind::Move { .. } | PatchKind::Copy { .. } => false,
                PatchKind::Test { .. } => true,
            }
    }

    /// Returns `path`, and `from` if the operation has it.
    pub fn pointers(&self) -> (&str, Option<&str>) {
        match &self.kind {
            PatchKind::Add { path, .. }
            | PatchKind::Remove { path }
            | PatchKind::Replace { path, .. }
            | PatchKind::Test { path, .. } => (path, None),
            PatchKind::Move { from, path } | PatchKind::Copy { from, path } => (path, Some(from)),
        }
    }
}

impl From<PatchKind> for PatchOperation {
    fn from(kind: PatchKind) -> Self {
        Self { kind, others: None }
    }
}

/// serde cannot distinguish the other members from the members of a flattened enum.
impl<'de> Deserialize<'de> for PatchOperation {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut others = JsonObject::deserialize(deserializer)?;
        let op = others.get("op").and_then(Value::as_str).unwrap_or_default();
        let names = PatchKind::members(op).unwrap_or_default();
        let own: JsonObject = ["op"]
            .iter()
            .chain(names)
            .filter_map(|name| others.shift_remove_entry(*name))
            .collect();
        let kind = PatchKind::deserialize(Value::Object(own)).map_err(D::Error::custom)?;
        Ok(Self { kind, others: Some(others).filter(|others| !others.is_empty()).map(Box::new) })
    }
}

/// Checks that all pointers are valid and that no value is moved into itself, which would make an
/// endless value in clients. Does not check that the patch applies.
///
/// # Errors
/// The first problem, for people.
pub fn check(patch: &[PatchOperation]) -> Result<(), String> {
    for operation in patch {
        let (path, from) = operation.pointers();
        if let Some(text) = [Some(path), from].into_iter().flatten().find(|text| !is_pointer(text))
        {
            return Err(format!("{text:?} is not a JSON Pointer"));
        }
        if let PatchKind::Move { from, path } = &operation.kind
            && path.strip_prefix(from.as_str()).is_some_and(|rest| rest.starts_with('/'))
        {
            return Err(format!("{from:?} is moved into itself, to {path:?}"));
        }
    }
    Ok(())
}

/// Returns whether a text is a JSON Pointer: empty, or tokens that begin with `/`, in which `0` or `1` follows each `~`.
///
/// ```
/// use agui_protocol::patch::is_pointer;
/// assert!(is_pointer("") && is_pointer("/a/0/~0b~1"));
/// assert!(!is_pointer("a") && !is_pointer("/~2") && !is_pointer("/a~"));
/// ```
pub fn is_pointer(text: &str) -> bool {
    let mut after_tildes = text.split('~').skip(1);
    text.is_empty()
        || (text.starts_with('/') && after_tildes.all(|rest| rest.starts_with(['0', '1'])))
}
