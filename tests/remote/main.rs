//! Agents that are other AG-UI endpoints, over real sockets on both sides: what a client of this server sees of
//! endpoints that behave, and of ones that do not.

#![allow(clippy::unwrap_used, missing_docs, unreachable_pub)]

mod bad;
mod forms;
mod good;
mod headers;
mod life;
#[path = "../support/running.rs"]
mod running;
#[path = "../support/server.rs"]
mod server;
#[path = "../support/mod.rs"]
mod support;
mod upstream;
