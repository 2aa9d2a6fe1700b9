//! Measures one call of a tool: its log line, its metrics and its span.

use std::time::Instant;

use crate::{
    agent::RunContext,
    base::trace::TraceScope,
    llm::call_content::result_text,
    observe::{
        metrics::ToolOutcome,
        telemetry::{begin_tool, end_tool},
    },
    protocol::{MessageContent, ToolCallId},
};

/// A call of a tool. Dropping it logs and counts the call.
pub(super) struct ToolMeter {
    cx: RunContext,
    tool: String,
    /// The provider's id of the call.
    pub(super) call: ToolCallId,
    begun: Instant,
    outcome: ToolOutcome,
    pub(super) scope: TraceScope,
}

impl ToolMeter {
    /// `tool` is the tool's name in metrics, `name` the one that the model called.
    pub(super) fn start(cx: &RunContext, call: &ToolCallId, tool: String, name: &str) -> Self {
        let scope = begin_tool(cx.trace(), name, call.as_str());
        let (cx, call) = (cx.clone(), call.clone());
        Self { cx, tool, call, begun: Instant::now(), outcome: ToolOutcome::Stopped, scope }
    }

    pub(super) fn end(&mut self, outcome: ToolOutcome) {
        self.outcome = outcome;
    }

    /// Ends the call with the text that the model gets.
    pub(super) fn end_with(&mut self, outcome: ToolOutcome, result: &MessageContent) {
        self.end(outcome);
        if self.scope.records_content() {
            self.scope.span().record("gen_ai.tool.call.result", result_text(result));
        }
    }
}

impl Drop for ToolMeter {
    fn drop(&mut self) {
        let duration = self.begun.elapsed();
        let (outcome, millis) = (self.outcome.name(), duration.as_millis() as u64);
        tracing::debug!(tool = self.tool, call = self.call.as_str(), outcome, millis, "tool call ended");
        if let Some(observer) = self.cx.observer() {
            observer.metrics.tools.ended(&self.tool, self.outcome, duration);
        }
        end_tool(&self.scope, self.outcome);
    }
}

#[cfg(test)]
pub(super) mod tests;
