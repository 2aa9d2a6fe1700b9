//! Measures one call of a tool: its log line and its metrics.

use std::time::Instant;

use crate::{agent::RunContext, metrics::ToolOutcome, protocol::ToolCallId};

/// A call of a tool. Dropping it logs and counts the call.
pub(super) struct ToolMeter {
    cx: RunContext,
    tool: String,
    /// The provider's id of the call.
    call: ToolCallId,
    begun: Instant,
    outcome: ToolOutcome,
}

impl ToolMeter {
    /// `tool` is the tool's name in metrics.
    pub(super) fn start(cx: &RunContext, call: &ToolCallId, tool: String) -> Self {
        let (cx, call) = (cx.clone(), call.clone());
        Self { cx, tool, call, begun: Instant::now(), outcome: ToolOutcome::Stopped }
    }

    pub(super) fn end(&mut self, outcome: ToolOutcome) {
        self.outcome = outcome;
    }
}

impl Drop for ToolMeter {
    fn drop(&mut self) {
        let duration = self.begun.elapsed();
        let (outcome, millis) = (self.outcome.name(), duration.as_millis() as u64);
        tracing::debug!(tool = self.tool, call = ?self.call, outcome, millis, "tool call ended");
        self.cx.metrics().tools.ended(&self.tool, self.outcome, duration);
    }
}

#[cfg(test)]
pub(super) mod tests;
