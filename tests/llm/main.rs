//! Agents with a model, and the clients of the providers' APIs, against a fake provider.

#![allow(clippy::unwrap_used, missing_docs, unreachable_pub)]

mod generated;
mod misbehaving;
mod models;
#[path = "../support/provider.rs"]
mod provider;
mod providers;
#[path = "../support/running.rs"]
mod running;
#[path = "../support/server.rs"]
mod server;
#[path = "../support/strict.rs"]
mod strict;
#[path = "../support/tokens.rs"]
mod tokens;
#[path = "../support/mod.rs"]
mod whole_streams;

/// The provider's key. It has no form of a key, so only its exact text can be found and removed.
const KEY: &str = "plainwordsfortests";
