//! Checks that JSON patches are valid. Does not check that they apply.

use super::violation::Violation;
use crate::protocol::{EventType, JsonPatch, patch};

/// Always returns `true`.
pub(crate) fn check_patch(event: EventType, patch: &JsonPatch) -> Result<bool, Violation> {
    patch::check(patch).map(|()| true).map_err(|problem| Violation::new(event, problem))
}
