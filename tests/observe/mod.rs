//! Observation: metrics, recordings and traces.

mod metrics;
mod recordings;
mod telemetry;
