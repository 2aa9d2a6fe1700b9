//! Observes runs without changing them: logs and traces, metrics, recordings.

// `unwrap_used` is in the root's Cargo.toml. A panic would end a run or a request, so a comment at
// each panic says why input cannot reach it.
#![cfg_attr(not(test), warn(clippy::expect_used, clippy::panic, clippy::unreachable))]

#[doc(hidden)]
pub mod metrics;
#[doc(hidden)]
pub mod recording;
#[doc(hidden)]
pub mod recordings;
#[doc(hidden)]
pub mod telemetry;

/// Counts and records a run and its calls: the metrics of the server, and the recording of the run if it has one.
#[doc(hidden)]
pub struct RunObserver {
    pub metrics: metrics::Metrics,
    pub recording: Option<recordings::LiveRecording>,
}
