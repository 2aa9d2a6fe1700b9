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
//!     Server::new().agent("hello", agent_fn(hello)).serve("127.0.0.1:8080").await
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
//! | an agent | an async function ([`agent::agent_fn`]), or [`agent::Agent`] | [`Server::agent`] |
//! | a tool for a model | a closure ([`tools::tool_fn`]), or [`tools::Tool`] | [`llm::LlmAgent::tool`], [`Server::tool`] |
//! | a model | [`llm::Model`] | [`llm::LlmAgent::new`], [`Server::model`] |
//! | a store | [`store::Store`] | [`Server::store`] |
//! | authentication | an async function ([`auth::Authenticator::from_fn`]), or middleware of the application ([`auth::Authenticator::from_extension`]) | [`Server::authenticator`] |
//!
//! [`Server::into_router`] mounts the server in an axum application. `examples/` has a program for each of these.
//!
//! # The path of a request
//! [`http`] reads the request and [`protocol`] decodes it. [`run`] drives the [`agent`] and guards the order of its
//! events, [`encode`] writes them into the response, and the [`store`] keeps threads. [`agents`] are the built-in agents,
//! [`llm`] those with a model, [`tools`] the tools of models, [`upstream`] the HTTP clients. [`auth`] authenticates,
//! [`config`] reads the configuration, [`telemetry`] logs and traces, [`metrics`] counts, [`recording`] records runs, and
//! [`app`] puts the parts together. [`named_events`] and [`copilotkit`] are further sets of routes, and [`playground`] is a
//! page for all agents.

// `unwrap_used` is in Cargo.toml. A panic would end a run or a request, so each one that stays says why input cannot reach it.
#![cfg_attr(not(test), warn(clippy::expect_used, clippy::panic, clippy::unreachable))]

pub mod agent;
pub mod agents;
pub mod app;
pub mod auth;
#[cfg(feature = "cli")]
pub mod cli;
#[cfg(feature = "config")]
pub mod config;
pub mod copilotkit;
pub mod encode;
pub mod http;
#[cfg(feature = "llm")]
pub mod llm;
pub mod metrics;
pub mod named_events;
#[cfg(feature = "openapi")]
mod openapi;
#[cfg(feature = "playground")]
pub mod playground;
pub mod prelude;
mod private_file;
pub mod protocol;
#[cfg_attr(
    not(feature = "llm"),
    allow(dead_code, unused_imports, reason = "only agents with a model have exchanges with providers")
)]
pub mod recording;
pub mod run;
mod schema;
pub mod store;
pub mod telemetry;
#[cfg(feature = "llm")]
pub mod tools;
mod units;
#[cfg(feature = "upstream")]
pub mod upstream;

pub use app::{Server, ServerError, ServerHandle, shutdown_signal};

/// The Rust code of the documentation, compiled by `cargo test --doc`.
#[cfg(doctest)]
mod documents {
    #[doc = include_str!("../README.md")]
    mod readme {}
    #[doc = include_str!("../README.zh-CN.md")]
    mod readme_chinese {}
    #[doc = include_str!("../docs/rust.md")]
    mod rust {}
}
