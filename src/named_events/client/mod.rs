//! Types for a client of the named-event endpoints that is written in Rust. The server does not use them.
//!
//! They are the models and trackers of the "AG-UI Protocol Implementation Guide", and are found by its names too:
//! [`ToolCallState`] and [`ReasoningState`] put the deltas of a stream together, [`HitlState`] keeps the open question,
//! [`HitlResponse`] answers it.

mod hitl;
mod reasoning;
mod tool_calls;

pub use hitl::{HitlResponse, HitlState, create_interrupt_event};
pub use reasoning::{ReasoningSession, ReasoningState, extract_reasoning};
pub use tool_calls::{LangChainToolCall, LangChainToolResult, ToolCallState, TrackedToolCall};
