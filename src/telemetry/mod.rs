//! Observability: the logs of the process, traces, and the export of both traces and metrics. The library starts nothing by
//! itself; the command does.
//!
//! Traces are `tracing` spans at the level `TRACE` whose target is [`TRACE_TARGET`], with the attributes of the semantic
//! conventions for generative AI. A layer that takes them, such as that of the command (feature `otel`), makes traces of
//! them; without one they cost a comparison each. With the feature `otel`, other servers get the ids of these spans,
//! without it those that the client has sent.

#[cfg(feature = "llm")]
mod call_spans;
#[cfg(all(feature = "cli", not(feature = "otel")))]
#[path = "no_export.rs"]
pub(crate) mod export;
#[cfg(all(feature = "cli", feature = "otel"))]
#[path = "otel_export.rs"]
pub(crate) mod export;
#[cfg(feature = "config")]
mod json_lines;
#[cfg(feature = "config")]
pub mod logs;
#[cfg(all(feature = "cli", feature = "otel"))]
mod openmetrics;
mod options;
#[cfg(all(feature = "cli", feature = "otel"))]
mod otel_client;
#[cfg(all(feature = "cli", feature = "otel"))]
mod otel_metrics;
#[cfg(all(feature = "cli", feature = "otel"))]
mod otel_variables;
#[cfg(feature = "otel")]
#[path = "otel_span_ids.rs"]
mod span_ids;
#[cfg(not(feature = "otel"))]
#[path = "no_span_ids.rs"]
mod span_ids;
mod spans;
mod trace_context;
mod trace_scope;

#[cfg(feature = "llm")]
pub(crate) use call_spans::{ModelEnd, ToolEnd, begin_model, begin_tool, end_model, end_tool};
pub use options::TelemetryOptions;
pub use spans::TRACE_TARGET;
pub(crate) use spans::{AgentEnd, ServerRequest, begin_agent, begin_server, end_agent, end_server};
pub use trace_context::{TRACEPARENT, TRACESTATE, TraceContext};
pub use trace_scope::TraceScope;
