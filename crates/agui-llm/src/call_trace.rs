//! The reports of a model's transport beside the answer: retries, the provider's id, the place in a
//! trace.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use http::HeaderMap;
use parking_lot::Mutex;

use agui_base::trace::TraceScope;
use agui_observe::recordings::LiveRecording;

/// Allows eight requests for one answer, not counting retries after transient failures.
const MAX_CHANGED_REQUESTS: u32 = 7;

/// The report of a model about a request, for logs, metrics and traces. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct CallTrace(Arc<TraceParts>);

#[derive(Debug, Default)]
struct TraceParts {
    scope: TraceScope,
    retries: AtomicU32,
    changed_requests: AtomicU32,
    request_id: Mutex<Option<String>>,
    recording: Option<LiveRecording>,
    owner: Arc<str>,
}

impl CallTrace {
    /// A request within a span, by a run of an owner that may be recorded.
    pub(super) fn new(
        scope: TraceScope,
        recording: Option<LiveRecording>,
        owner: Arc<str>,
    ) -> Self {
        Self(Arc::new(TraceParts { scope, recording, owner, ..TraceParts::default() }))
    }

    /// Returns the owner of the run; empty outside of a run.
    pub(super) fn owner(&self) -> &Arc<str> {
        &self.0.owner
    }

    /// Returns the headers `traceparent` and `tracestate` for the request to the provider. Empty outside of a trace.
    pub fn headers(&self) -> HeaderMap {
        self.0.scope.headers()
    }

    pub(super) fn scope(&self) -> &TraceScope {
        &self.0.scope
    }

    pub(super) fn recording(&self) -> Option<&LiveRecording> {
        self.0.recording.as_ref()
    }

    /// Counts a request that is sent to the provider again.
    pub fn count_retry(&self) {
        self.0.retries.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a request that is sent in another form, because the provider refused the one before.
    /// Returns `false` at the limit of such requests.
    pub(super) fn count_changed_request(&self) -> bool {
        self.0.changed_requests.fetch_add(1, Ordering::Relaxed) < MAX_CHANGED_REQUESTS
    }

    /// Sets the provider's id of the request. Of several requests for one answer, the last one counts.
    pub fn set_request_id(&self, id: &str) {
        *self.0.request_id.lock() = Some(id.to_owned());
    }

    /// Returns how often the request was sent again.
    pub fn retries(&self) -> u32 {
        self.0.retries.load(Ordering::Relaxed)
    }

    /// Returns the provider's id of the request, once its response has begun.
    pub fn request_id(&self) -> Option<String> {
        self.0.request_id.lock().clone()
    }
}
