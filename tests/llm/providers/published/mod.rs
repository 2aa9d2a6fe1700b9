//! What the providers publish about their APIs: checks that refuse what the real ones refuse.

pub mod anthropic;
pub mod chat;
pub mod gemini;
pub mod responses;
pub mod shape;
