//! [`RunObserver`]: what a run and its calls are counted by and recorded in.

use super::{metrics::Metrics, recordings::LiveRecording};

/// The metrics of the server, and the recording of the run if it has one.
pub(crate) struct RunObserver {
    pub(crate) metrics: Metrics,
    pub(crate) recording: Option<LiveRecording>,
}
