//! The error of an illegal event, the check of patches, and the type of owners.

use std::borrow::Cow;

use agui_protocol::{EventType, SubagentRunId, host::JsonPatch, patch};

/// The owner of an item: a subagent, or `None` for the parent agent.
pub(super) type Owner = Option<SubagentRunId>;

/// An event that is illegal at this point of the stream.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}: {problem}", .event.as_str())]
pub struct Violation {
    event: EventType,
    problem: Cow<'static, str>,
}

impl Violation {
    pub fn new(event: EventType, problem: impl Into<Cow<'static, str>>) -> Self {
        Self { event, problem: problem.into() }
    }
}

/// Checks that a JSON patch is valid, and not that it applies. Always returns `true`.
pub(crate) fn check_patch(event: EventType, patch: &JsonPatch) -> Result<bool, Violation> {
    patch::check(patch).map(|()| true).map_err(|problem| Violation::new(event, problem))
}
