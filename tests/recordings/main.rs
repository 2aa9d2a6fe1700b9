//! Recordings, with the real command: what is written, what is replayed, and what a test of
//! them finds.

#![allow(clippy::unwrap_used, missing_docs, unreachable_pub)]

mod desk;
mod exchanges;
mod exported;
mod files;
#[path = "../support/provider.rs"]
mod provider;
mod replayed;
#[path = "../support/server.rs"]
mod server;
#[path = "../support/running.rs"]
mod support;
mod tested;
mod written;
