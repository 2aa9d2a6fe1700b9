//! Measures one call to a model: its log line, its metrics and its span.

use std::time::{Duration, Instant};

use super::{
    call_content::{OutputContent, finish_reason, input_messages, system_instructions},
    call_trace::CallTrace,
    model::{Model, ModelError, ModelEvent, ModelRequest},
};
use agui_agent::RunContext;
use agui_observe::{
    metrics::{ModelCall, ModelCallOutcome},
    telemetry::{ModelEnd, begin_model, end_model},
};
use agui_protocol::TokenUsage;

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
    finish_reason: Option<&'static str>,
    /// `None` unless spans record content.
    output: Option<OutputContent>,
}

impl CallMeter {
    /// Starts the call's span, and sets the request's thread and trace.
    pub(super) fn start(cx: &RunContext, model: &dyn Model, request: &mut ModelRequest) -> Self {
        let provider = model.provider().to_owned();
        // A request can choose among the models of the configuration only.
        let model = request.model.as_deref().unwrap_or(model.name()).to_owned();
        let scope = begin_model(cx.trace(), &provider, &model, cx.agent(), cx.thread_id().as_str());
        let records_content = scope.records_content();
        if records_content {
            scope.span().record("gen_ai.system_instructions", system_instructions(request));
            scope.span().record("gen_ai.input.messages", input_messages(request));
        }
        request.thread = Some(cx.asked_for().clone());
        let recording = cx.observer().and_then(|observer| observer.recording.clone());
        request.trace = CallTrace::new(scope, recording, cx.owner());
        Self {
            cx: cx.clone(),
            provider,
            model,
            trace: request.trace.clone(),
            begun: Instant::now(),
            first_token: None,
            outcome: ModelCallOutcome::Stopped,
            usage: TokenUsage::default(),
            finish_reason: None,
            output: records_content.then(OutputContent::default),
        }
    }

    pub(super) fn observe(&mut self, item: &Result<ModelEvent, ModelError>) {
        if let (Some(output), Ok(event)) = (&mut self.output, item) {
            output.apply(event);
        }
        match item {
            Ok(ModelEvent::Delta { .. } | ModelEvent::WrittenCalls { .. }) => {
                _ = self.first_token.get_or_insert_with(|| self.begun.elapsed());
            }
            // A later report replaces this one.
            Ok(ModelEvent::Usage(usage)) => self.usage = usage.clone(),
            Ok(ModelEvent::Stop(reason)) => {
                self.outcome = ModelCallOutcome::Ok;
                self.finish_reason = Some(finish_reason(reason));
            }
            Err(error) => self.outcome = ModelCallOutcome::Error(error.code()),
            Ok(_) => {}
        }
    }
}

impl Drop for CallMeter {
    fn drop(&mut self) {
        let call = ModelCall {
            provider: &self.provider,
            model: &self.model,
            outcome: self.outcome,
            duration: self.begun.elapsed(),
            first_token: self.first_token,
            retries: self.trace.retries(),
            usage: std::mem::take(&mut self.usage),
        };
        let (finish_reason, request_id) = (self.finish_reason, self.trace.request_id());
        tracing::debug!(
            provider = self.provider,
            model = self.model,
            outcome = call.outcome.name(),
            code = call.outcome.code(),
            request_id,
            retries = call.retries,
            millis = call.duration.as_millis() as u64,
            first_token_millis = call.first_token.map(|time| time.as_millis() as u64),
            input_tokens = call.usage.input_tokens,
            output_tokens = call.usage.output_tokens,
            "model call ended"
        );
        let output =
            self.output.as_ref().map(|output| output.to_json(finish_reason.unwrap_or("error")));
        let end =
            ModelEnd { call: &call, finish_reason, request_id: request_id.as_deref(), output };
        end_model(self.trace.scope(), &end);
        let cost = self
            .cx
            .observer()
            .and_then(|observer| observer.metrics.models.ended(&observer.metrics.prices, &call));
        let mut calls = self.cx.model_calls();
        if !calls.models.contains(&self.model) {
            calls.models.push(self.model.clone());
        }
        if let Some(cost) = cost {
            *calls.cost.get_or_insert(0.0) += cost;
        }
    }
}
