//! References within a schema.

use serde_json::{Map, Value};

use crate::text::short_name;

/// Keywords that apply the schema that they refer to.
pub(super) const REFERENCES: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];

/// Returns the schemas that the references of `members` lead to.
///
/// Only `#` and `#/path` are resolved. With anchors, other addresses and percent-encoded paths, this function and the
/// validator could resolve a reference to two different schemas, and the limits would not hold for the second one.
///
/// # Errors
/// The reference that is not resolved.
pub(super) fn targets<'s>(
    root: &'s Value,
    members: &Map<String, Value>,
) -> Result<Vec<&'s Value>, String> {
    let references = REFERENCES.iter().filter_map(|keyword| members.get(*keyword)?.as_str());
    references.map(|reference| resolve(root, reference)).collect()
}

fn resolve<'s>(root: &'s Value, reference: &str) -> Result<&'s Value, String> {
    let shown = || short_name(reference);
    let path = reference
        .strip_prefix('#')
        .filter(|path| !path.contains('%') && (path.is_empty() || path.starts_with('/')));
    let path = path
        .ok_or_else(|| format!("the reference {:?} is not supported: use \"#/path\"", shown()))?;
    root.pointer(path).ok_or_else(|| format!("the reference {:?} leads to nothing", shown()))
}
