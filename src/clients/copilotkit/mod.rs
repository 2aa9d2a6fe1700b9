//! The CopilotKit runtime API, so that a page sets its `runtimeUrl` to this server and needs no runtime in Node.
//!
//! The format is the one that the client in `@copilotkit/core` 1.75 reads and writes. Runs and
//! threads are shared with all other routes. Below the prefix are `/info`, `/agent/{agent}/…`,
//! `/transcribe` and `/threads…`; `POST` at the prefix itself takes any of their requests in an
//! envelope. `routes.rs` lists the routes.

mod agents;
mod client;
mod connect;
mod debug_events;
mod envelope;
mod info;
mod inspect;
mod join_token;
mod restate;
mod routes;
mod socket;
mod stop;
mod threads;
mod transcribe;

pub(crate) use client::CopilotKit;
pub(crate) use routes::route_sets;
pub(crate) use transcribe::{Speech, Transcribe, TranscriptionError};
