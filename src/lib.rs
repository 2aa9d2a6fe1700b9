//! A server for AG-UI, the protocol between AI agents and the user interfaces in front of them.
//!
//! A front end POSTs a conversation, [`protocol::RunAgentInput`]; the server runs an [`agent::Agent`] and
//! streams back typed [`protocol::Event`]s as Server-Sent Events. This crate is the `agui-server`
//! command, and the library it is made of, for agents written in Rust:
//!
//! ```no_run
//! use agui_server::{Server, agent::{RunContext, emit::TextMessage, event_stream}, protocol::RunAgentInput};
//!
//! #[tokio::main]
//! async fn main() -> std::io::Result<()> {
//!     let hello = |input: RunAgentInput, _: RunContext| event_stream(async_stream::try_stream! {
//!         let message = TextMessage::new();
//!         yield message.start();
//!         yield message.delta("You said: ");
//!         yield message.delta(input.last_user_text().unwrap_or_default());
//!         yield message.end();
//!     });
//!     Server::new().agent("hello", hello).serve("127.0.0.1:8080").await
//! }
//! ```
//!
//! # The way of a request
//! [`http`] reads it and [`protocol`] decodes it; [`run`] drives the [`agent`] and guards what it sends;
//! [`encode`] writes each event into the response's own buffer, and the [`store`] keeps what outlives it. [`agents`] are
//! the built-in ones, [`llm`] those with a model behind them, [`tools`] what a model can do, [`upstream`] the way to other
//! servers. [`auth`] says who asks, [`config`] what was set, [`telemetry`] what happened, and [`app`] puts it all
//! together.

pub mod agent;
pub mod agents;
pub mod app;
pub mod auth;
pub mod config;
pub mod copilotkit;
pub mod encode;
pub mod http;
pub mod llm;
pub mod named_events;
pub mod prelude;
pub mod protocol;
pub mod run;
pub mod store;
pub mod telemetry;
pub mod tools;
pub mod upstream;

pub use app::{Server, shutdown_signal};
