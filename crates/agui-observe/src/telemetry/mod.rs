//! Observability: the logs of the process, traces, and their export. The command starts them. In a
//! program with the library, `Server::serve` starts the logs unless the program has a subscriber.
//!
//! Traces are `tracing` spans at the level `TRACE` whose target is [`TRACE_TARGET`], with the
//! attributes of the semantic conventions for generative AI. A layer, such as the command's
//! (feature `otel`), makes traces from them. Without a layer, a span costs one comparison.

mod call_spans;
#[cfg(not(feature = "otel"))]
#[path = "no_export.rs"]
pub mod export;
#[cfg(feature = "otel")]
#[path = "otel_export.rs"]
pub mod export;
mod json_lines;
pub mod logs;
mod options;
#[cfg(feature = "otel")]
mod otel_client;
#[cfg(feature = "otel")]
mod otel_variables;
mod spans;

pub use call_spans::{ModelEnd, begin_model, begin_tool, end_model, end_tool};
pub use options::TelemetryOptions;
pub use spans::TRACE_TARGET;
pub use spans::{AgentEnd, ServerRequest, begin_agent, begin_server, end_agent, end_server};
