//! The server over real sockets, with well-behaved and hostile clients.

#![allow(clippy::unwrap_used, missing_docs, unreachable_pub)]

#[path = "../protocol/corpus/catalogue.rs"]
mod catalogue;
mod cors;
mod dialects;
mod errors;
mod foreign_pages;
mod index;
mod limits;
mod openapi;
mod playground;
#[path = "../support/provider.rs"]
mod provider;
#[allow(dead_code, reason = "other test crates use more of it")]
#[path = "../support/server.rs"]
mod server;
mod stream;
#[path = "../support/running.rs"]
mod support;
#[path = "../support/tokens.rs"]
mod tokens;
#[path = "../support/mod.rs"]
mod whole_streams;
