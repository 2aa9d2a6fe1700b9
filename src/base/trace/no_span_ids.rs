//! Spans without ids, in a build without the feature `otel`.

use tracing::Span;

use super::TraceContext;

pub(crate) fn context_of(_: &Span) -> Option<TraceContext> {
    None
}

pub(crate) fn set_parent(_: &Span, _: &TraceContext) {}

pub(crate) fn end(_: &Span) {}

pub(crate) fn set_list(_: &Span, _: &'static str, _: &[&'static str]) {}
