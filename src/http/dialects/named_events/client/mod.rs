//! Types for a client of the named-event endpoints that is written in Rust: the models and trackers of the "AG-UI
//! Protocol Implementation Guide", found by its names too. The server does not use them.

mod hitl;
mod reasoning;
mod tool_calls;

pub use hitl::{HitlResponse, HitlState, create_interrupt_event};
pub use reasoning::{ReasoningSession, ReasoningState, extract_reasoning};
pub use tool_calls::{LangChainToolCall, LangChainToolResult, ToolCallState, TrackedToolCall};
