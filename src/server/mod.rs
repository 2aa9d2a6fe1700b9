//! Puts the parts together: [`Server`], by hand or from a configuration.
//!
//! `builder.rs` has the builder; `start.rs` builds agents, tools and routes from it when the server
//! starts. Code that only a configuration needs is in `configured/` (in builds without it:
//! `unconfigured.rs`) and `from_config.rs`.

mod builder;
#[cfg(feature = "cli")]
pub(crate) mod cli;
#[cfg_attr(not(feature = "config"), path = "unconfigured.rs")]
mod configured;
mod error;
#[cfg(feature = "config")]
mod from_config;
mod handle;
mod optional_routes;
#[cfg(feature = "config")]
pub(crate) mod options;
mod shutdown;
mod start;
mod startup_log;

#[cfg(feature = "cli")]
pub(crate) use self::startup_log::reachable;
pub use self::{
    builder::Server, error::ServerError, handle::ServerHandle, shutdown::shutdown_signal,
};
