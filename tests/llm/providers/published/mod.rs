//! Checks of requests by the providers' published rules.

pub mod anthropic;
pub mod chat;
pub mod gemini;
pub mod responses;
pub mod shape;
