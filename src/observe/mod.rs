//! What only looks on: logs and traces, metrics, recordings of runs.

pub(crate) mod metrics;
#[cfg_attr(
    not(feature = "llm"),
    allow(dead_code, unused_imports, reason = "only agents with a model have exchanges with providers")
)]
pub(crate) mod recordings;
pub(crate) mod run_observer;
pub(crate) mod telemetry;

pub(crate) use run_observer::RunObserver;
