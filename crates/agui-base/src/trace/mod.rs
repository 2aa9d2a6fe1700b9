//! The place of work in a trace, which crates pass to each other and to other servers: W3C Trace
//! Context.
//!
//! With the feature `otel`, other servers get the ids of this server's spans. Without it, they get
//! the ids that the client has sent.

mod context;
mod scope;
#[cfg(feature = "otel")]
#[path = "otel_span_ids.rs"]
pub mod span_ids;
#[cfg(not(feature = "otel"))]
#[path = "no_span_ids.rs"]
pub mod span_ids;

pub use self::context::{TRACEPARENT, TraceContext};
pub use self::scope::TraceScope;
