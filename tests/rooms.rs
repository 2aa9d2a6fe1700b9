//! The integration tests, with a module for each subject. They are one program, because each
//! program is linked with all crates. Two programs of their own, `chaos` and `memory`, load the
//! machine for minutes.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::print_stderr,
    missing_docs,
    unreachable_pub
)]

mod agent;
mod auth;
mod clients;
mod http;
mod llm;
mod observe;
mod protocol;
mod real;
mod run;
mod server;
mod store;
mod support;
mod surfaces;
mod threads;
mod tools;
