//! The parts of a server that a configuration describes.
//!
//! [`Configured`] keeps the configuration; its agents and tools are built when the server starts, so that it can name
//! agents, tools and models that are added in Rust after it was read.

mod advice;
pub(super) mod agent_models;
mod agents;
pub(super) mod callers;
mod jwt;
mod llm;
mod models;
pub(super) mod options;
mod sandbox_workspaces;
pub(super) mod store;
mod tools;
pub(super) mod transcription;

pub(super) use self::{
    agents::{BuiltAgents, Configured},
    tools::ServerTools,
};
