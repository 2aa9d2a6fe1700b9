//! Callers: API keys, tokens with fixed or published keys, and how much one caller may use.

#![allow(clippy::unwrap_used, missing_docs, unreachable_pub)]

mod jwks;
mod jwt;
mod keys;
mod quota;
#[path = "../support/server.rs"]
mod server;
#[path = "../support/running.rs"]
mod support;
#[path = "../support/tokens.rs"]
mod tokens;
