//! The report of a run for operators: its span, its last log line, and its metrics.

use std::time::Duration;

use super::clock::Clock;
use agui_agent::{
    RunContext,
    host::{ContextParts, RunIdentity},
};
use agui_base::{text::short_name, trace::TraceScope};
use agui_observe::{
    metrics::CountedRunEnd,
    telemetry::{AgentEnd, begin_agent, end_agent},
};
use agui_protocol::TokenUsage;

/// Returns the context of a server's run, within its own span. `trace` is the place of the run's
/// request.
pub(crate) fn context_in_span(parts: ContextParts, trace: &TraceScope) -> RunContext {
    let RunIdentity { agent, thread_id, run_id, .. } = &parts.identity;
    let trace = begin_agent(trace, agent, thread_id, run_id);
    RunContext::from(parts).within(trace)
}

/// Writes the last log line of a run, counts the run, and ends its span. `outcome` is `success`,
/// `interrupt`, `cancelled`, `time limit`, `failed`, `abandoned` or `handed over`.
pub(crate) fn report_end(
    cx: &RunContext,
    outcome: &'static str,
    code: Option<&str>,
    events: u64,
    repairs: u64,
    clock: &Clock,
) {
    let in_millis = |time: Duration| time.as_millis() as u64;
    let duration = clock.elapsed();
    let first_event = clock.first_event;
    let first_token = clock.first_token;
    let mut all = TokenUsage::default();
    cx.usage().iter().for_each(|usage| all.add(usage));
    let TokenUsage { input_tokens, output_tokens, .. } = all;
    let calls = cx.model_calls().clone();
    let model = (!calls.models.is_empty()).then(|| calls.models.join(", "));
    let shown_code = code.map(short_name);
    tracing::info!(
        outcome,
        code = shown_code.as_deref(),
        events,
        millis = in_millis(duration),
        first_token_millis = first_token.map(in_millis),
        model,
        input_tokens,
        output_tokens,
        cost = calls.cost,
        "run ended"
    );
    let outcome = if outcome == "time limit" { "cancelled" } else { outcome };
    end_agent(cx.trace(), &AgentEnd { outcome, code, input_tokens, output_tokens });
    let agent = cx.agent();
    if let Some(observer) = cx.observer() {
        let ended =
            CountedRunEnd { agent, outcome, code, duration, first_event, first_token, repairs };
        observer.metrics.runs.ended(&ended);
    }
}
