//! The named-event endpoints: `POST /agent/chat/stream` and `POST /agent/agent/stream`.
//!
//! A second format for the same agents, runs and threads, described by the "AG-UI Protocol Implementation Guide": a
//! client sends its new messages and a `thread_id` in snake case, the server keeps the history, each event has a name on
//! the wire, and a person answers an interrupt with a text or with decisions. Types have the names of that guide.
//!
//! - `endpoints`: the routes and the story of a request; [`NamedEventOptions`] says which agents answer.
//! - [`request`], [`content`], [`decision`]: the request body, read from untrusted JSON.
//! - `encoder`, [`interrupt`]: AG-UI events as named events; [`make_event`] writes one.
//! - `answers`: answers to interrupts as AG-UI resume entries.
//! - [`client`]: types for a client that is written in Rust. The server does not use them.

mod answers;
pub mod client;
pub mod content;
pub mod decision;
mod encoder;
mod endpoints;
mod error;
mod frame;
pub mod interrupt;
mod interrupt_kind;
mod options;
mod questions;
pub mod request;

pub use content::{AudioBlock, ContentBlock, ImageBlock, MediaBlock, ReasoningBlock, TextBlock};
pub use decision::{HitlDecision, HitlDecisionType};
pub use encoder::NamedEventEncoder;
pub(crate) use endpoints::routes;
pub use error::InvalidRequest;
pub use frame::make_event;
pub use interrupt::{ActionRequest, HitlContext, HitlOption, HitlRequest, PlanStep, ReviewConfig};
pub use options::NamedEventOptions;
pub use request::{AgentMessage, ChatMessage, ChatRequest, MessageBody, MessageRole};
