//! Whole servers: the library as applications use it, the command with its configuration, and several servers on one store.

#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::print_stderr, missing_docs, unreachable_pub)]

mod chat;
mod documents;
mod library;
#[path = "../support/poll.rs"]
mod poll;
#[path = "../support/postgres.rs"]
mod postgres;
mod process;
#[path = "../support/provider.rs"]
mod provider;
mod replicas;
#[path = "../support/server.rs"]
mod server;
#[path = "../support/small_disk.rs"]
mod small_disk;
#[path = "../support/running.rs"]
mod support;
#[path = "../support/tokens.rs"]
mod tokens;
#[path = "../support/mod.rs"]
mod whole_streams;
