//! The named-event endpoints: `POST /agent/chat/stream` and `POST /agent/agent/stream`.
//!
//! A second format for the same agents, runs and threads. The "AG-UI Protocol Implementation Guide" describes it and
//! names the types: a client sends its new messages and a `thread_id` in snake case, the server keeps the history, each
//! event has a name on the wire, and a person replies to an interrupt with a text or with decisions. `endpoints.rs`
//! handles a request.

mod content_block;
mod decision;
pub(crate) mod encoder;
mod endpoints;
mod error;
mod frame;
pub(crate) mod interrupt;
mod interrupt_kind;
mod questions;
mod replies;
mod request;
mod schema;

pub use crate::http::client_options::NamedEventOptions;
pub use content_block::{
    AudioBlock, ContentBlock, ImageBlock, MediaBlock, ReasoningBlock, TextBlock,
};
pub use decision::{HitlDecision, HitlDecisionType};
pub(crate) use encoder::NamedEventEncoder;
pub(crate) use endpoints::route_set;
pub use error::InvalidRequest;
pub use frame::make_event;
pub use interrupt::{ActionRequest, HitlContext, HitlOption, HitlRequest, PlanStep, ReviewConfig};
pub use request::{AgentMessage, ChatMessage, ChatRequest, MessageBody, MessageRole};
