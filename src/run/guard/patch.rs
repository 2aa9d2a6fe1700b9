//! Checks that JSON patches are valid. Does not check that they apply.

use super::violation::Violation;
use crate::protocol::{EventType, JsonPatch, PatchOperation, patch::is_pointer};

/// Also rejects moving a value into itself, which makes an endless value in clients. Always returns `true`.
pub(super) fn check_patch(event: EventType, patch: &JsonPatch) -> Result<bool, Violation> {
    for operation in patch {
        let (path, from) = operation.pointers();
        if let Some(text) = [Some(path), from].into_iter().flatten().find(|text| !is_pointer(text)) {
            return Err(Violation::new(event, format!("{text:?} is not a JSON Pointer")));
        }
        if let PatchOperation::Move { from, path } = operation
            && path.strip_prefix(from.as_str()).is_some_and(|rest| rest.starts_with('/'))
        {
            return Err(Violation::new(event, format!("{from:?} is moved into itself, to {path:?}")));
        }
    }
    Ok(true)
}
