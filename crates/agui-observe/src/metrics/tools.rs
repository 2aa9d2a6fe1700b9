//! Calls of tools, and tools that cannot be offered.

use std::time::Duration;

use prometheus_client::metrics::histogram::Histogram;

use super::{
    area::metrics,
    labels::{BoundedNames, Counters, Histograms, Labels},
};

/// In seconds.
const CALL_BUCKETS: [f64; 11] = [0.001, 0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 10.0, 30.0, 60.0];

/// The end of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolOutcome {
    Ok,
    Error,
    Timeout,
    /// The call asked a person, and is made again with the answer.
    Question,
    /// The call was not run: an unknown tool, wrong arguments, too many calls, or a person declined it.
    Refused,
    /// The run ended during the call.
    Stopped,
}

impl ToolOutcome {
    pub fn from_result(failed: bool) -> Self {
        if failed { Self::Error } else { Self::Ok }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Error => "error",
            Self::Timeout => "timeout",
            Self::Question => "question",
            Self::Refused => "refused",
            Self::Stopped => "stopped",
        }
    }
}

metrics! { ToolMetrics {
    names: BoundedNames,
    /// Calls of tools by outcome: ok, error, timeout, question, refused, stopped
    calls: Counters<2> = "tool_calls",
    /// Duration of calls of tools
    duration: Histograms<1> = "tool_call_duration" in seconds CALL_BUCKETS,
} }

impl ToolMetrics {
    pub fn ended(&self, tool: &str, outcome: ToolOutcome, duration: Duration) {
        let labels: Labels<1> = [("tool", self.names.bounded(tool).into())];
        let [tool] = labels.clone();
        self.calls.get_or_create(&[tool, ("outcome", outcome.name().into())]).inc();
        if outcome != ToolOutcome::Refused {
            self.duration.get_or_create(&labels).observe(duration.as_secs_f64());
        }
    }
}
