//! The protocol: what the decoder reads, and what the encoders write.

#![allow(clippy::unwrap_used, missing_docs, unreachable_pub)]

mod corpus;
mod decode_properties;
#[path = "../support/mod.rs"]
mod support;
