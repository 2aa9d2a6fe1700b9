//! Calls to models: outcomes, times, tokens and cost.

use std::{sync::atomic::AtomicU64, time::Duration};

use prometheus_client::metrics::{counter::Counter, family::Family, histogram::Histogram};

use super::{
    Prices,
    area::metrics,
    labels::{BoundedNames, Counters, Histograms, Labels, OTHER, known_code},
};
use agui_protocol::TokenUsage;

/// In seconds.
const CALL_BUCKETS: [f64; 12] =
    [0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 180.0, 600.0];

/// The end of a call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ModelCallOutcome {
    Ok,
    Error(&'static str),
    /// The run ended or was cancelled before the answer was complete.
    #[default]
    Stopped,
}

impl ModelCallOutcome {
    pub fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Error(_) => "error",
            Self::Stopped => "stopped",
        }
    }

    pub fn code(self) -> Option<&'static str> {
        match self {
            Self::Error(code) => Some(code),
            Self::Ok | Self::Stopped => None,
        }
    }
}

/// A call that has ended.
#[derive(Debug, Default)]
pub struct ModelCall<'c> {
    pub provider: &'c str,
    /// The configured name, not the one that the provider reports.
    pub model: &'c str,
    pub outcome: ModelCallOutcome,
    pub duration: Duration,
    pub first_token: Option<Duration>,
    pub retries: u32,
    pub usage: TokenUsage,
}

metrics! { ModelMetrics {
    /// The provider and the model, each pair on two lines.
    pairs: BoundedNames,
    /// Calls to models by outcome: ok, error, stopped
    calls: Counters<3> = "model_calls",
    /// Calls to models that failed after their retries
    errors: Counters<3> = "model_errors",
    /// Requests to providers that were sent again
    retries: Counters<2> = "model_retries",
    /// Tokens; reasoning is a part of output, cached_input and cache_write are parts of input
    tokens: Counters<3> = "model_tokens",
    /// Cost of tokens, in the currency of [prices]
    cost: Family<Labels<2>, Counter<f64, AtomicU64>> = "model_cost",
    /// Time from the request to a model to the end of its answer, with retries
    duration: Histograms<2> = "model_call_duration" in seconds CALL_BUCKETS,
    /// Time from the request to a model to the first piece of its answer
    first_token: Histograms<2> = "model_first_token" in seconds CALL_BUCKETS,
} }

impl ModelMetrics {
    /// Counts a call, and returns its cost if the model has a price.
    pub fn ended(&self, prices: &Prices, call: &ModelCall<'_>) -> Option<f64> {
        let pair = self.pairs.bounded(&format!("{}\n{}", call.provider, call.model));
        let (provider, model) = pair.split_once('\n').unwrap_or((OTHER, OTHER));
        let labels: Labels<2> =
            [("provider", provider.to_owned().into()), ("model", model.to_owned().into())];
        let with = |name: &'static str, value: &'static str| {
            let [provider, model] = labels.clone();
            [provider, model, (name, value.into())]
        };
        let usage = &call.usage;
        self.calls.get_or_create(&with("outcome", call.outcome.name())).inc();
        if let Some(code) = call.outcome.code() {
            self.errors.get_or_create(&with("code", known_code(code))).inc();
        }
        self.retries.get_or_create(&labels).inc_by(call.retries.into());
        let kinds = [
            ("input", usage.input_tokens),
            ("output", usage.output_tokens),
            ("reasoning", usage.reasoning_tokens),
            ("cached_input", usage.cached_input_tokens),
            ("cache_write", usage.cache_write_input_tokens),
        ];
        for (kind, tokens) in kinds {
            if let Some(tokens) = tokens {
                self.tokens.get_or_create(&with("kind", kind)).inc_by(tokens);
            }
        }
        self.duration.get_or_create(&labels).observe(call.duration.as_secs_f64());
        if let Some(time) = call.first_token {
            self.first_token.get_or_create(&labels).observe(time.as_secs_f64());
        }
        let cost = prices.cost(call.model, usage)?;
        self.cost.get_or_create(&labels).inc_by(cost);
        Some(cost)
    }
}
