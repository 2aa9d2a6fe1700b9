//! The guide's dialect of AG-UI as plain types: snake-case requests, named events, decisions of people.
//!
//! A second way to speak with the same agents: a client sends what is new and a `thread_id`, the server keeps the
//! history, and each event has a name of its own on the wire. The shapes are those of the "AG-UI Protocol
//! Implementation Guide"; the names of types are the guide's, too, so that who knows it finds them.
//!
//! - [`request`]: what a client sends, read from untrusted JSON; [`blocks`] is what a message carries.
//! - [`tool_call`], [`reasoning`]: the payloads of the tool and reasoning events, and trackers that put them together.
//! - [`hitl`]: the `interrupt` event, and what people answer; [`answer`] puts AG-UI interrupts into the one and makes
//!   AG-UI resume entries of the other.

pub mod answer;
pub mod blocks;
pub mod hitl;
pub mod reasoning;
pub mod request;
pub mod tool_call;

use serde::Serialize;

pub use answer::answers;
pub use blocks::{AudioBlock, ContentBlock, ImageBlock, MediaBlock, ReasoningBlock, TextBlock};
pub use hitl::{
    ActionRequest, HitlContext, HitlDecision, HitlDecisionType, HitlOption, HitlRequest, HitlResponse, HitlState,
    PlanStep, ReviewConfig,
};
pub use reasoning::{ReasoningSession, ReasoningState};
pub use request::{AgentMessage, ChatMessage, ChatRequest, Fault, MessageBody, MessageRole};
pub use tool_call::{ToolCall, ToolCallState, ToolResult, TrackedCall};

/// One event on the wire: its name, and one line of JSON.
///
/// ```
/// use agui_server::protocol::guide::make_event;
/// let frame = make_event("status", &serde_json::json!({ "type": "run_started", "message": "hello" }));
/// assert_eq!(frame, "event: status\ndata: {\"type\":\"run_started\",\"message\":\"hello\"}\n\n");
/// ```
pub fn make_event(name: &str, payload: &impl Serialize) -> String {
    let mut out = Vec::new();
    write_event(name, payload, &mut out);
    // JSON is UTF-8, and so are names.
    String::from_utf8_lossy(&out).into_owned()
}

/// Appends an event as [`make_event`] writes it. A payload that JSON cannot express is left out with its event.
pub fn write_event(name: &str, payload: &impl Serialize, out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(b"event: ");
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\ndata: ");
    match serde_json::to_writer(&mut *out, payload) {
        Ok(()) => out.extend_from_slice(b"\n\n"),
        Err(error) => {
            out.truncate(start);
            tracing::error!(%error, event = name, "an event could not be encoded");
        }
    }
}
