//! Spans without ids, in a build without the feature `otel`.

use tracing::Span;

use super::TraceContext;

pub fn context_of(_: &Span) -> Option<TraceContext> {
    None
}

pub fn set_parent(_: &Span, _: &TraceContext) {}

pub fn end(_: &Span) {}

pub fn set_list(_: &Span, _: &'static str, _: &[&'static str]) {}
