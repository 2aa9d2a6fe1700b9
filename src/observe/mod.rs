//! What only looks on: logs and traces, metrics, recordings of runs.

pub(crate) mod metrics;
pub(crate) mod recordings;
pub(crate) mod run_observer;
pub(crate) mod telemetry;

pub(crate) use run_observer::RunObserver;
