//! The ids of spans that a layer of `tracing-opentelemetry` takes.

use std::str::FromStr as _;

use opentelemetry::{
    Array, Context, StringValue, Value,
    trace::{SpanContext, SpanId, TraceContextExt as _, TraceFlags, TraceId, TraceState},
};
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt as _;

use super::TraceContext;

/// Returns `None` if no such layer takes the span.
pub fn context_of(span: &Span) -> Option<TraceContext> {
    if span.is_disabled() {
        return None;
    }
    let context = span.context();
    let span = context.span();
    let ids = span.span_context();
    let (trace_id, span_id) = (
        u128::from_be_bytes(ids.trace_id().to_bytes()),
        u64::from_be_bytes(ids.span_id().to_bytes()),
    );
    let (flags, state) = (ids.trace_flags().to_u8(), ids.trace_state().header());
    (trace_id != 0 && span_id != 0).then_some(TraceContext { trace_id, span_id, flags, state })
}

/// Continues the trace of another program. Has no effect on a span whose id was used already.
pub fn set_parent(span: &Span, parent: &TraceContext) {
    if span.is_disabled() {
        return;
    }
    let TraceContext { trace_id, span_id, flags, .. } = *parent;
    let state =
        parent.tracestate().and_then(|state| TraceState::from_str(state).ok()).unwrap_or_default();
    let ids = (TraceId::from(trace_id), SpanId::from(span_id));
    let remote = SpanContext::new(ids.0, ids.1, TraceFlags::new(flags), true, state);
    // Fails if no layer takes the span.
    let _ = span.set_parent(Context::new().with_remote_span_context(remote));
}

/// Ends the span now, also if something still holds it.
pub fn end(span: &Span) {
    if !span.is_disabled() {
        span.context().span().end();
    }
}

/// `tracing` has no lists as values.
pub fn set_list(span: &Span, key: &'static str, values: &[&'static str]) {
    let values = values.iter().map(|value| StringValue::from(*value)).collect();
    span.set_attribute(key, Value::Array(Array::String(values)));
}
