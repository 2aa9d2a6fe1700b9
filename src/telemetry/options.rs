//! The configuration section `[telemetry]`.

use serde::Deserialize;

/// Options of traces. The environment variables of OpenTelemetry say where traces are sent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct TelemetryOptions {
    /// Puts the messages, arguments and results of model calls and tool calls into spans.
    pub content: bool,
}
