//! The spans of traces, with the names and attributes of OpenTelemetry's semantic conventions
//! (<https://opentelemetry.io/docs/specs/semconv/gen-ai/>). `agui.…` are attributes of our own.
//!
//! An end also ends a span that is still referenced, such as by a task that an agent has left
//! behind.

use tracing::{Span, field::Empty};

use agui_base::trace::{TraceContext, TraceScope, span_ids};

/// The `tracing` target of all spans of traces.
pub const TRACE_TARGET: &str = "agui_server::traces";

/// The longest name or code from a model or an agent, in bytes.
pub(super) const MAX_NAME_BYTES: usize = 80;
/// The longest other text from a client or a provider, in bytes.
pub(super) const MAX_TEXT_BYTES: usize = 1024;

/// A request to this server.
pub struct ServerRequest<'r> {
    pub method: &'r str,
    pub path: &'r str,
    /// The pattern of the path, unless no route has the path.
    pub route: Option<&'r str>,
    pub request_id: &'r str,
    pub requested: Option<&'r TraceContext>,
}

/// Returns the span of a request, and its place in a trace.
pub fn begin_server(request: &ServerRequest<'_>) -> (Span, Option<TraceContext>) {
    let ServerRequest { method, path, route, request_id, requested } = *request;
    let is_within = span_ids::context_of(&Span::current()).is_some();
    let span = tracing::trace_span!(
        target: TRACE_TARGET,
        "http_request",
        otel.name = route.map_or_else(|| method.to_owned(), |route| format!("{method} {route}")),
        otel.kind = "server",
        otel.status_code = Empty,
        http.request.method = method,
        http.route = route,
        http.response.status_code = Empty,
        url.path = cut(path, MAX_TEXT_BYTES),
        url.scheme = "http",
        "error.type" = Empty,
        agui.request.id = request_id,
    );
    // An application around this router may have read the headers already, for a span of its own.
    if let Some(requested) = requested.filter(|_| !is_within) {
        span_ids::set_parent(&span, requested);
    }
    let context = span_ids::context_of(&span).or_else(|| requested.cloned());
    (span, context)
}

/// `status` is absent if the client left before the response began.
pub fn end_server(span: &Span, status: Option<u16>) {
    if let Some(status) = status {
        span.record("http.response.status_code", i64::from(status));
        if status >= 500 {
            fail(span, &status.to_string());
        }
    }
    span_ids::end(span);
}

/// Returns the scope of a run of an agent, or of a subagent within the scope of its call.
pub fn begin_agent(scope: &TraceScope, agent: &str, thread: &str, run: &str) -> TraceScope {
    let span = scope.span().in_scope(|| {
        tracing::trace_span!(
            target: TRACE_TARGET,
            "invoke_agent",
            otel.name = format!("invoke_agent {agent}"),
            otel.kind = "internal",
            otel.status_code = Empty,
            gen_ai.operation.name = "invoke_agent",
            gen_ai.agent.name = agent,
            gen_ai.conversation.id = thread,
            gen_ai.usage.input_tokens = Empty,
            gen_ai.usage.output_tokens = Empty,
            "error.type" = Empty,
            agui.run.id = run,
            agui.outcome = Empty,
        )
    });
    // The request's span is named by its ids and is not held, because a detached run outlives its request.
    if let Some(requested) = scope.requested().filter(|_| scope.span().is_disabled()) {
        span_ids::set_parent(&span, requested);
    }
    scope.within(span)
}

pub struct AgentEnd<'r> {
    pub outcome: &'r str,
    pub code: Option<&'r str>,
    pub input_tokens: Option<u64>,
    pub output_tokens: Option<u64>,
}

pub fn end_agent(scope: &TraceScope, end: &AgentEnd<'_>) {
    let span = scope.span();
    if span.is_disabled() {
        return;
    }
    span.record("agui.outcome", end.outcome);
    record_number(span, "gen_ai.usage.input_tokens", end.input_tokens);
    record_number(span, "gen_ai.usage.output_tokens", end.output_tokens);
    if let Some(code) = end.code {
        fail(span, code);
    }
    span_ids::end(span);
}

pub(super) fn fail(span: &Span, code: &str) {
    span.record("error.type", cut(code, MAX_NAME_BYTES));
    span.record("otel.status_code", "ERROR");
}

pub(super) fn cut(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}

/// OpenTelemetry has no unsigned numbers.
pub(super) fn record_number(span: &Span, field: &'static str, number: Option<u64>) {
    span.record(field, number.and_then(|number| i64::try_from(number).ok()));
}
