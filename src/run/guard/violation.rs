//! An event that breaks a rule, and whose item it is about.

use std::borrow::Cow;

use crate::protocol::{EventType, SubagentRunId};

/// Whose an item is: a subagent invocation's, or the parent agent's.
pub(super) type Owner = Option<SubagentRunId>;

/// An event that no legal stream has at this point.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}: {problem}", .event.as_str())]
pub struct Violation {
    event: EventType,
    problem: Cow<'static, str>,
}

impl Violation {
    pub(super) fn new(event: EventType, problem: impl Into<Cow<'static, str>>) -> Self {
        Self { event, problem: problem.into() }
    }

    /// The type of the event that cannot be sent.
    pub fn event(&self) -> EventType {
        self.event
    }
}
