//! The spans of calls within a run: of models and of tools.

use tracing::field::Empty;

use super::spans::{MAX_NAME_BYTES, MAX_TEXT_BYTES, TRACE_TARGET, cut, fail, record_number};
use crate::metrics::{ModelCall, ToolOutcome};
use agui_base::trace::{TraceScope, span_ids};

/// Returns the scope of a call of a model.
pub fn begin_model(
    scope: &TraceScope,
    provider: &str,
    model: &str,
    agent: &str,
    thread: &str,
) -> TraceScope {
    let new = || {
        tracing::trace_span!(
            target: TRACE_TARGET,
            "chat",
            otel.name = format!("chat {model}"),
            otel.kind = "client",
            otel.status_code = Empty,
            gen_ai.operation.name = "chat",
            gen_ai.provider.name = provider_name(provider),
            gen_ai.request.model = model,
            gen_ai.request.stream = true,
            gen_ai.agent.name = agent,
            gen_ai.conversation.id = thread,
            gen_ai.response.time_to_first_chunk = Empty,
            gen_ai.usage.input_tokens = Empty,
            gen_ai.usage.output_tokens = Empty,
            gen_ai.usage.cache_read.input_tokens = Empty,
            gen_ai.usage.cache_creation.input_tokens = Empty,
            gen_ai.usage.reasoning.output_tokens = Empty,
            gen_ai.system_instructions = Empty,
            gen_ai.input.messages = Empty,
            gen_ai.output.messages = Empty,
            "error.type" = Empty,
            agui.outcome = Empty,
            agui.retries = Empty,
            agui.provider.request_id = Empty,
        )
    };
    scope.within(scope.span().in_scope(new))
}

pub struct ModelEnd<'r> {
    pub call: &'r ModelCall<'r>,
    pub finish_reason: Option<&'static str>,
    pub request_id: Option<&'r str>,
    /// The content as JSON, if spans may have content.
    pub output: Option<String>,
}

pub fn end_model(scope: &TraceScope, end: &ModelEnd<'_>) {
    let (span, ModelCall { outcome, usage, .. }) = (scope.span(), end.call);
    if span.is_disabled() {
        return;
    }
    span.record("agui.outcome", outcome.name());
    span.record("agui.retries", i64::from(end.call.retries));
    span.record("agui.provider.request_id", end.request_id);
    span.record(
        "gen_ai.response.time_to_first_chunk",
        end.call.first_token.map(|time| time.as_secs_f64()),
    );
    record_number(span, "gen_ai.usage.input_tokens", usage.input_tokens);
    record_number(span, "gen_ai.usage.output_tokens", usage.output_tokens);
    record_number(span, "gen_ai.usage.cache_read.input_tokens", usage.cached_input_tokens);
    record_number(span, "gen_ai.usage.cache_creation.input_tokens", usage.cache_write_input_tokens);
    record_number(span, "gen_ai.usage.reasoning.output_tokens", usage.reasoning_tokens);
    span.record("gen_ai.output.messages", end.output.as_deref());
    if let Some(reason) = end.finish_reason {
        span_ids::set_list(span, "gen_ai.response.finish_reasons", &[reason]);
    }
    if let Some(code) = outcome.code() {
        fail(span, code);
    }
    span_ids::end(span);
}

/// Returns the scope of a call of a tool.
pub fn begin_tool(scope: &TraceScope, tool: &str, call: &str) -> TraceScope {
    let tool = cut(tool, MAX_NAME_BYTES);
    let new = || {
        tracing::trace_span!(
            target: TRACE_TARGET,
            "execute_tool",
            otel.name = format!("execute_tool {tool}"),
            otel.kind = "internal",
            otel.status_code = Empty,
            gen_ai.operation.name = "execute_tool",
            gen_ai.tool.name = tool,
            "gen_ai.tool.type" = "function",
            gen_ai.tool.call.id = cut(call, MAX_TEXT_BYTES),
            gen_ai.tool.call.arguments = Empty,
            gen_ai.tool.call.result = Empty,
            mcp.method.name = Empty,
            "error.type" = Empty,
            agui.outcome = Empty,
            agui.mcp.server = Empty,
        )
    };
    scope.within(scope.span().in_scope(new))
}

pub fn end_tool(scope: &TraceScope, outcome: ToolOutcome) {
    let span = scope.span();
    if span.is_disabled() {
        return;
    }
    span.record("agui.outcome", outcome.name());
    if matches!(outcome, ToolOutcome::Error | ToolOutcome::Timeout) {
        fail(span, outcome.name());
    }
    span_ids::end(span);
}

/// Returns the conventions' name of a provider.
fn provider_name(provider: &str) -> &str {
    match provider {
        "azure" => "azure.ai.openai",
        "gemini" => "gcp.gemini",
        "mistral" => "mistral_ai",
        "xai" => "x_ai",
        other => other,
    }
}
