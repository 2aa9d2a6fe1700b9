//! Puts the parts together: [`Server`], by hand or from a configuration.
//!
//! `server.rs` is the builder; `start.rs` builds agents, tools and routes from it when the server starts. What only a
//! configuration needs is in `configured/` and `from_config.rs`.

#[cfg(feature = "config")]
mod configured;
mod error;
#[cfg(feature = "config")]
mod from_config;
mod further_routes;
mod handle;
mod server;
mod shutdown;
mod start;
mod startup_log;
#[cfg(feature = "config")]
mod workspaces;

pub use self::{error::ServerError, handle::ServerHandle, server::Server, shutdown::shutdown_signal};
