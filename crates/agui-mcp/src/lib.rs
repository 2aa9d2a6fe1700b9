//! Tools of MCP servers, which this server starts as processes or reaches by URL.
//!
//! A server is connected in the background, for as long as its [`McpServer`] lives: startup neither
//! waits for it nor fails because of it. A lost session is opened again after a pause that grows
//! from 1 to 60 seconds; meanwhile the tools stay listed, and a call wakes the supervisor and waits
//! (`current_session.rs`). A call that times out, or whose future is dropped, is cancelled at the
//! server.
//!
//! **The failure of a call ends that call alone.** After a failure of unknown outcome and after a
//! timeout the server is pinged, and connected to again if the ping fails. Calls of the earlier
//! session over HTTP go on until their ends; a process is replaced when no call is open.
//!
//! A server is asked for its revisions (`server/discover`). Older servers are connected to by
//! `initialize`, which is remembered until this process ends. `session.rs` has both openings,
//! `rounds.rs` the calls of several requests.
//!
//! A tool has the `prefix` and the name that its server gives it. All characters but ASCII letters,
//! digits, `-` and `_` are replaced by `_`, and a name that is changed or cut to 64 characters ends
//! with a digest. A process inherits only the variables in `process.rs`.
//!
//! A server is not trusted with memory or time: the sizes of lists, schemas, messages, questions
//! and results are limited, and a call ends at `max_timeout_secs` despite its progress. `call.rs`
//! has the story of a call.

// `unwrap_used` is in the root's Cargo.toml. A panic would end a run or a request, so each
// remaining one has a reason why input cannot reach it.
#![cfg_attr(not(test), warn(clippy::expect_used, clippy::panic, clippy::unreachable))]

mod annotations;
mod apps;
mod call;
mod client;
mod current_session;
mod dense_messages;
mod features;
mod flood;
mod handler;
mod http_client;
mod http_response;
mod in_flight;
mod listing;
mod message_form;
mod oauth;
mod options;
mod persons;
mod probe;
mod process;
mod result;
mod rounds;
mod server;
mod session;
mod supervisor;
#[cfg(test)]
mod tests;
mod tokens;
mod tool;
mod tool_ui;
mod wanted;

pub use self::{
    annotations::McpApproval,
    options::{McpRevision, McpServerOptions},
    server::McpServer,
};
