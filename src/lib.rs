//! A server for AG-UI, the protocol between AI agents and the user interfaces in front of them.
//!
//! A front end POSTs a conversation, [`protocol::RunAgentInput`]. The server runs an [`agent::Agent`] and streams back
//! typed [`protocol::Event`]s as Server-Sent Events. This crate is the `agui-server` command, and a library for agents
//! written in Rust:
//!
//! ```no_run
//! use agui_server::prelude::*;
//!
//! #[tokio::main]
//! async fn main() -> std::io::Result<()> {
//!     Server::new().agent("hello", hello).serve("127.0.0.1:8080").await
//! }
//!
//! async fn hello(input: RunAgentInput, out: Emitter) -> Result<(), AgentError> {
//!     let said = input.last_user_text().unwrap_or_default();
//!     out.text(format!("You said: {said}")).await
//! }
//! ```
//!
//! # Extension points
//! | write | as | and give it to |
//! |---|---|---|
//! | an agent | an async function ([`agent::IntoAgent`]), or [`agent::Agent`] | [`Server::agent`] |
//! | a tool for a model | a closure ([`tools::tool_fn`]), or [`tools::Tool`] | [`llm::LlmAgent::tool`], [`Server::tool`] |
//! | a model | [`llm::Model`] | [`llm::LlmAgent::new`], [`Server::model`] |
//! | a store | [`store::Store`] | [`Server::store`] |
//! | authentication | an async function ([`auth::Authenticator::from_fn`]), or middleware of the application ([`auth::Authenticator::from_extension`]) | [`Server::authenticator`] |
//!
//! [`Server::into_router`] mounts the server in an axum application. `examples/` has a program for each of these.
//!
//! # The path of a request
//! `http` reads the request and [`protocol`] decodes it. `agui-run` drives the [`agent`] and guards the order of its events, and
//! the [`store`] keeps threads. [`llm`] has the agents with a model, [`tools`] their tools. [`auth`] authenticates. The
//! crates of the workspace and their order are in `docs/architecture.md`. The options of a [`Server`]
//! are in [`options`].

// Code that only some features use would need a condition on each function. The build with all features finds dead code.
#![cfg_attr(not(feature = "full"), allow(dead_code, unused_imports))]
// `unwrap_used` is in Cargo.toml. A panic would end a run or a request, so each one that stays says why input cannot reach it.
#![cfg_attr(not(test), warn(clippy::expect_used, clippy::panic, clippy::unreachable))]

pub mod agent;
pub mod auth;
mod clients;
mod http;
#[doc(hidden)]
pub mod internal;
#[cfg(feature = "llm")]
pub mod llm;
pub mod options;
pub mod prelude;
pub mod protocol;
mod server;
pub mod store;
#[cfg(feature = "llm")]
pub mod tools;

pub use agui_observe::telemetry::logs;
pub use agui_run::Run;
pub use clients::named_events;
/// The arguments of [`tools::tool_fn`] derive `schemars::JsonSchema`.
#[cfg(feature = "llm")]
pub use schemars;
pub use server::{Server, ServerError, ServerHandle, shutdown_signal};

/// Configurations in TOML, for programs that build a server of one.
#[cfg(feature = "config")]
pub mod config {
    pub use crate::server::options::{ConfigError, Loaded, Sources};
}

/// The Rust code of the documentation, compiled by `cargo test --doc`.
#[cfg(doctest)]
mod documents {
    #[doc = include_str!("../README.md")]
    mod readme {}
    #[doc = include_str!("../README.zh-CN.md")]
    mod readme_chinese {}
    #[doc = include_str!("../docs/rust.md")]
    mod rust {}
    #[doc = include_str!("../docs/rust-model.md")]
    mod rust_model {}
}
