//! Measures one call to a model: its log line and its metrics.

use std::time::{Duration, Instant};

use super::{
    call_trace::CallTrace,
    model::{Model, ModelError, ModelEvent, ModelRequest},
};
use crate::{
    agent::RunContext,
    metrics::{ModelCall, ModelCallOutcome},
    protocol::TokenUsage,
};

/// A call to a model, from the request to the end of its answer. Dropping it logs and counts the call.
pub(super) struct CallMeter {
    cx: RunContext,
    provider: String,
    model: String,
    trace: CallTrace,
    begun: Instant,
    first_token: Option<Duration>,
    outcome: ModelCallOutcome,
    usage: TokenUsage,
}

impl CallMeter {
    /// The request is about to be given to the model.
    pub(super) fn start(cx: &RunContext, model: &dyn Model, request: &mut ModelRequest) -> Self {
        request.trace = CallTrace::recorded(cx.recording());
        Self {
            cx: cx.clone(),
            provider: model.provider().to_owned(),
            // A request can choose among the models of the configuration only.
            model: request.model.as_deref().unwrap_or(model.name()).to_owned(),
            trace: request.trace.clone(),
            begun: Instant::now(),
            first_token: None,
            outcome: ModelCallOutcome::Stopped,
            usage: TokenUsage::default(),
        }
    }

    pub(super) fn observe(&mut self, item: &Result<ModelEvent, ModelError>) {
        match item {
            Ok(ModelEvent::Delta { .. }) if self.first_token.is_some() => {}
            Ok(ModelEvent::Delta { .. }) => self.first_token = Some(self.begun.elapsed()),
            // A later one replaces it.
            Ok(ModelEvent::Usage(usage)) => self.usage = usage.clone(),
            Ok(ModelEvent::Stop(_)) => self.outcome = ModelCallOutcome::Ok,
            Err(error) => self.outcome = ModelCallOutcome::Error(error.code()),
            Ok(_) => {}
        }
    }
}

impl Drop for CallMeter {
    fn drop(&mut self) {
        let (duration, retries) = (self.begun.elapsed(), self.trace.retries());
        let usage = std::mem::take(&mut self.usage);
        let code = match self.outcome {
            ModelCallOutcome::Error(code) => Some(code),
            _ => None,
        };
        tracing::debug!(
            provider = self.provider,
            model = self.model,
            outcome = self.outcome.name(),
            code,
            request_id = self.trace.request_id(),
            retries,
            millis = duration.as_millis() as u64,
            first_token_millis = self.first_token.map(|time| time.as_millis() as u64),
            input_tokens = usage.input_tokens,
            output_tokens = usage.output_tokens,
            "model call ended"
        );
        let (provider, model) = (&*self.provider, &*self.model);
        let (outcome, first_token) = (self.outcome, self.first_token);
        let call = ModelCall { provider, model, outcome, duration, first_token, retries, usage };
        let metrics = self.cx.metrics();
        let cost = metrics.models.ended(&metrics.prices, &call);
        let mut calls = self.cx.model_calls();
        if !calls.models.iter().any(|known| known == model) {
            calls.models.push(model.to_owned());
        }
        if let Some(cost) = cost {
            *calls.cost.get_or_insert(0.0) += cost;
        }
    }
}
