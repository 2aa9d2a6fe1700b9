//! What only looks on: metrics, recordings and traces.

#![allow(clippy::unwrap_used, missing_docs, unreachable_pub)]

mod metrics;
#[path = "../support/provider.rs"]
mod provider;
mod recordings;
#[path = "../support/running.rs"]
mod running;
#[path = "../support/server.rs"]
mod server;
mod telemetry;
