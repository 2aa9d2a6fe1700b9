//! Memory of a server process, under clients that do not read and hostile ones.
//!
//! Linux only, because it reads `/proc`.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::print_stdout, missing_docs)]

mod hostile_connections;
mod load_server;
mod streams;
#[allow(dead_code, reason = "the program uses a part of it")]
#[path = "../support"]
mod support {
    pub(crate) mod server;
}
