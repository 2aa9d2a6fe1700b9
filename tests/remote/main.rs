//! Remote agents over real sockets on both sides: the events that a client gets from endpoints that behave, and from
//! ones that do not.

#![allow(clippy::unwrap_used, missing_docs, unreachable_pub)]

mod conformance;
mod endpoint;
mod failures;
mod forwarding;
mod headers;
mod lifetime;
mod replays;
#[path = "../support/running.rs"]
mod running;
#[path = "../support/server.rs"]
mod server;
mod stream_formats;
#[path = "../support/mod.rs"]
mod support;
