//! What a model's transport reports about a request beside its answer: retries, and the provider's id.

use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicU32, Ordering},
};

use crate::recording::LiveRecording;

/// What a model reports about a request, for logs and metrics. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct CallTrace(Arc<TraceParts>);

#[derive(Debug, Default)]
struct TraceParts {
    retries: AtomicU32,
    request_id: Mutex<Option<String>>,
    recording: Option<LiveRecording>,
}

impl CallTrace {
    /// A trace for a model call of a run, which may be recorded.
    pub(super) fn recorded(recording: Option<&LiveRecording>) -> Self {
        Self(Arc::new(TraceParts { recording: recording.cloned(), ..TraceParts::default() }))
    }

    pub(super) fn recording(&self) -> Option<&LiveRecording> {
        self.0.recording.as_ref()
    }

    /// Counts a request that is sent to the provider again.
    pub fn count_retry(&self) {
        self.0.retries.fetch_add(1, Ordering::Relaxed);
    }

    /// Sets the provider's id of the request. Of several requests for one answer, the last one counts.
    pub fn set_request_id(&self, id: &str) {
        *self.0.request_id.lock().unwrap_or_else(PoisonError::into_inner) = Some(id.to_owned());
    }

    /// Returns how often the request was sent again.
    pub fn retries(&self) -> u32 {
        self.0.retries.load(Ordering::Relaxed)
    }

    /// Returns the provider's id of the request, once its response has begun.
    pub fn request_id(&self) -> Option<String> {
        self.0.request_id.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
