//! What only looks on: logs and traces, metrics, recordings of runs.

#[doc(hidden)]
pub mod metrics;
#[doc(hidden)]
pub mod recording;
#[doc(hidden)]
pub mod recordings;
#[doc(hidden)]
pub mod telemetry;

/// What a run and its calls are counted by and recorded in: the metrics of the server, and the recording of the run if it has
/// one.
#[doc(hidden)]
pub struct RunObserver {
    pub metrics: metrics::Metrics,
    pub recording: Option<recordings::LiveRecording>,
}
