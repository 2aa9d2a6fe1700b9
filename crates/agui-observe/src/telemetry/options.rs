//! The configuration section `[telemetry]`.

use serde::Deserialize;

/// Options of traces. The environment variables of OpenTelemetry say where traces are sent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct TelemetryOptions {
    /// True puts the messages, arguments and results of model calls and tool calls into spans. Everybody who reads the
    /// traces then reads the conversations.
    pub content: bool,
}
