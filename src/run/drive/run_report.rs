//! The end of a run for operators: its last log line, its metrics, and the end of its span.

use std::time::Duration;

use super::clock::Clock;
use crate::{
    agent::RunContext,
    base::text::shortened,
    observe::{
        RunObserver,
        metrics::CountedRunEnd,
        telemetry::{AgentEnd, end_agent},
    },
    protocol::{Event, TokenUsage},
};

/// The longest error code that is logged, in characters. An agent can choose its own.
const MAX_CODE_CHARS: usize = 80;

/// The times of the agent's first event and of its first piece of text, reasoning or arguments, since the run's start.
#[derive(Debug, Default)]
pub(crate) struct FirstTimes {
    event: Option<Duration>,
    token: Option<Duration>,
}

impl FirstTimes {
    /// Returns whether nothing more is to be noted. Nearly all events of a run come after that.
    pub(crate) fn are_known(&self) -> bool {
        self.token.is_some()
    }

    #[cold]
    pub(crate) fn note(&mut self, event: &Event, clock: &Clock) {
        self.event.get_or_insert_with(|| clock.elapsed());
        let is_token = matches!(
            event,
            Event::TextMessageContent(_)
                | Event::TextMessageChunk(_)
                | Event::ReasoningMessageContent(_)
                | Event::ReasoningMessageChunk(_)
                | Event::ToolCallArgs(_)
                | Event::ToolCallChunk(_)
        );
        if is_token {
            self.token = Some(clock.elapsed());
        }
    }
}

/// A run that has ended.
pub(crate) struct RunReport<'r> {
    pub(crate) cx: &'r RunContext,
    /// `success`, `interrupt`, `cancelled`, `time limit`, `failed` or `abandoned`.
    pub(crate) outcome: &'static str,
    pub(crate) code: Option<&'r str>,
    pub(crate) events: u64,
    pub(crate) duration: Duration,
    pub(crate) first: &'r FirstTimes,
    pub(crate) repairs: u64,
}

impl RunReport<'_> {
    /// Writes the last log line of the run, counts the run, and ends its span.
    pub(crate) fn publish(&self) {
        let Self { cx, outcome, code, events, duration, first, repairs } = *self;
        let in_millis = |time: Duration| time.as_millis() as u64;
        let mut all = TokenUsage::default();
        cx.usage().iter().for_each(|usage| all.add(usage));
        let TokenUsage { input_tokens, output_tokens, .. } = all;
        let calls = cx.model_calls().clone();
        let model = (!calls.models.is_empty()).then(|| calls.models.join(", "));
        // Quoted, because an agent can choose the code.
        let shown_code = code.map(|code| shortened(code, MAX_CODE_CHARS));
        tracing::info!(
            outcome,
            code = shown_code.as_ref().map(tracing::field::debug),
            events,
            millis = in_millis(duration),
            first_token_millis = first.token.map(in_millis),
            model,
            input_tokens,
            output_tokens,
            // In decimals: a float is written as 5.5e-5.
            cost = calls.cost.map(|cost| tracing::field::display(format!("{cost:.6}"))),
            "run ended"
        );
        let outcome = if outcome == "time limit" { "cancelled" } else { outcome };
        end_agent(cx.trace(), &AgentEnd { outcome, code, input_tokens, output_tokens });
        let agent = cx.agent();
        let (first_event, first_token) = (first.event, first.token);
        if let Some(observer) = cx.observer::<RunObserver>() {
            let ended = CountedRunEnd { agent, outcome, code, duration, first_event, first_token, repairs };
            observer.metrics.runs.ended(&ended);
        }
    }
}
