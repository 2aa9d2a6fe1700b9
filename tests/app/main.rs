//! The library as applications use it: the builder, Rust parts in a configuration, a mounted router, the start of the
//! command.

#![allow(clippy::unwrap_used, missing_docs, unreachable_pub)]

mod builder;
mod configured;
mod mounted;
mod start;
#[path = "../support/running.rs"]
mod support;
