//! What only looks on: metrics, recordings and traces.

mod metrics;
mod recordings;
mod telemetry;
