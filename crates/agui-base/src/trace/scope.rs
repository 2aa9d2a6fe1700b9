//! The place of a run, or of a call in it, in a trace.

use std::{fmt, sync::Arc};

use http::HeaderMap;
use tracing::Span;

use super::{
    context::{TRACEPARENT, TraceContext},
    span_ids,
};

/// The span of a run or of one of its calls, for the work and the calls below it. Cheap to clone.
///
/// Without an exporter there is no span, and other servers get the place that the request named.
#[derive(Clone)]
pub struct TraceScope {
    span: Span,
    requested: Option<Arc<TraceContext>>,
    pub records_content: bool,
}

impl TraceScope {
    /// Returns whether messages, arguments and results belong into the span.
    pub fn records_content(&self) -> bool {
        self.records_content && !self.span().is_disabled()
    }

    /// `requested` is the place that the request named. `records_content` puts messages, arguments
    /// and results into spans.
    pub fn new(requested: Option<Arc<TraceContext>>, records_content: bool) -> Self {
        Self { span: Span::none(), requested, records_content }
    }

    /// The scope within a span.
    pub fn within(&self, span: Span) -> Self {
        Self { span, requested: self.requested.clone(), records_content: self.records_content }
    }

    /// The place for other servers: the span, or else the place that the request named.
    pub fn context(&self) -> Option<TraceContext> {
        span_ids::context_of(&self.span).or_else(|| self.requested.as_deref().cloned())
    }

    /// The headers `traceparent` and `tracestate` for a request to another server. Empty outside of a trace.
    pub fn headers(&self) -> HeaderMap {
        self.context().map(|context| context.to_headers()).unwrap_or_default()
    }

    /// Adds the place to the headers of a request, unless they name one already.
    pub fn add_to(&self, headers: &mut HeaderMap) {
        if !headers.contains_key(TRACEPARENT) {
            headers.extend(self.headers());
        }
    }

    /// The span, for `tracing` spans below it; disabled without an exporter.
    pub fn span(&self) -> &Span {
        &self.span
    }

    pub fn requested(&self) -> Option<&TraceContext> {
        self.requested.as_deref()
    }
}

impl Default for TraceScope {
    fn default() -> Self {
        Self::new(None, false)
    }
}

impl fmt::Debug for TraceScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TraceScope").field("context", &self.context()).finish_non_exhaustive()
    }
}
