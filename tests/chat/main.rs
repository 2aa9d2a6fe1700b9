//! `agui-server chat`, with the real command: in a pipe, and in a terminal.

#![allow(clippy::unwrap_used, missing_docs, unreachable_pub)]

mod agents;
mod pipe;
#[path = "../support/server.rs"]
#[allow(dead_code, reason = "only the path of the command is used")]
mod server;
#[path = "../support/running.rs"]
mod support;
#[cfg(target_os = "linux")]
mod terminal;
