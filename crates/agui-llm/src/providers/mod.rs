//! The providers' APIs. A new API implements [`Model`](super::Model) on `transport`, like these.

pub(super) mod anthropic;
mod api_host;
pub(super) mod attachments;
pub(super) mod chat;
pub(super) mod gemini;
pub(super) mod openai;
mod openai_effort;
pub(super) mod portable_tools;
pub(super) mod responses;
mod strict_schema;
mod tool_schema;
mod warning_list;
pub(super) mod wire;
