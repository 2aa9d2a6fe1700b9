//! Agents that come with the server.

#![allow(clippy::unwrap_used, missing_docs, unreachable_pub)]

mod remote;
#[path = "../support/running.rs"]
mod running;
#[path = "../support/server.rs"]
mod server;
#[path = "../support/mod.rs"]
mod whole_streams;
