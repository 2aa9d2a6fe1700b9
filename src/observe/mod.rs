//! What only looks on: logs and traces, metrics, recordings of runs.

pub(crate) mod metrics;
pub(crate) mod recordings;
pub(crate) mod telemetry;

/// What a run and its calls are counted by and recorded in: the metrics of the server, and the recording of the run if it has
/// one.
pub(crate) struct RunObserver {
    pub(crate) metrics: metrics::Metrics,
    pub(crate) recording: Option<recordings::LiveRecording>,
}
