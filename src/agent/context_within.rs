//! The context of a part of a run that has a span of its own: a tool call or a subagent of an agent with a model.

use super::RunContext;
use crate::telemetry::TraceScope;

impl RunContext {
    /// The context of the same run within a span of it.
    pub(crate) fn within(&self, trace: TraceScope) -> Self {
        Self { parts: self.parts.clone(), trace }
    }
}
