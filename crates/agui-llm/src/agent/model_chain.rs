//! The model that answers a step: the agent's own, another one that the request chooses, or a fallback.

use futures::{StreamExt as _, stream};
use serde_json::Value;

use super::settings::Settings;
use crate::{
    call_meter::CallMeter,
    history,
    model::{Model, ModelError, ModelEvent, ModelRequest, ModelStream},
};
use agui_agent::{AgentError, RunContext};
use agui_base::{RunErrorCode, text::short_name};
use agui_protocol::RunAgentInput;

/// The member of `forwardedProps` that chooses a model.
pub(super) const MODEL: &str = "model";
/// The codes of errors before an answer after which the next model is tried. Other errors are about the request.
const UNAVAILABLE: [RunErrorCode; 5] = [
    RunErrorCode::ModelUnreachable,
    RunErrorCode::ModelTimeout,
    RunErrorCode::ModelRateLimited,
    RunErrorCode::ModelUnavailable,
    RunErrorCode::ModelInterrupted,
];

pub(super) struct ModelChain<'s> {
    settings: &'s Settings,
    /// The chosen name of the agent's own model. Fallbacks have their own names.
    chosen: Option<String>,
    /// The number of models that were unavailable in this run. They are not tried again in it, because each attempt can
    /// take as long as its time limit.
    unavailable: usize,
}

impl<'s> ModelChain<'s> {
    /// Fails if the request chooses a model that it may not choose.
    pub(super) fn new(settings: &'s Settings, input: &RunAgentInput) -> Result<Self, AgentError> {
        Ok(Self { settings, chosen: chosen_model(settings, input)?, unavailable: 0 })
    }

    /// Returns the name of the model for the next request, if it is not the model's own.
    pub(super) fn chosen(&self) -> Option<String> {
        self.chosen.clone().filter(|_| self.unavailable == 0)
    }

    /// Sends the request to the first model that is available. Returns the model's provider, and the answer, which may have
    /// begun already.
    pub(super) async fn open(
        &mut self,
        mut request: ModelRequest,
        cx: &RunContext,
    ) -> (&'s str, ModelStream) {
        let settings = self.settings;
        if !cx.accepts_instructions() {
            let current = std::mem::take(&mut request.current);
            history::add_data(&mut request.steps, current);
        }
        loop {
            let at = self.unavailable;
            let model: &'s dyn Model = match at.checked_sub(1) {
                Some(fallback) => &*settings.fallbacks[fallback],
                None => &*settings.model,
            };
            let provider = model.provider();
            let mut meter = CallMeter::start(cx, model, &mut request);
            let next = settings.fallbacks.get(at);
            let sent = if next.is_some() { request.clone() } else { std::mem::take(&mut request) };
            let mut answer = model.stream(sent).inspect(move |event| meter.observe(event)).boxed();
            let Some(next) = next else { return (provider, answer) };
            let early = until_first_token(&mut answer).await;
            match early.last() {
                Some(Err(error)) if cannot_serve(error) => {
                    let fallback = next.name();
                    let model = request.model.as_deref().unwrap_or(model.name());
                    tracing::warn!(
                        provider,
                        model,
                        fallback,
                        ?error,
                        "a model is unavailable; trying its fallback"
                    );
                    self.unavailable += 1;
                    request.model = None;
                }
                _ => return (provider, stream::iter(early).chain(answer).boxed()),
            }
        }
    }
}

/// Returns whether the next model is asked after an error. A key that is not accepted is a mistake of
/// the configuration, which a fallback would hide.
fn cannot_serve(error: &ModelError) -> bool {
    error.has_no_access() || UNAVAILABLE.iter().any(|code| code.as_str() == error.code())
}

/// Returns the events up to the first one that belongs to the answer, or to the error.
async fn until_first_token(answer: &mut ModelStream) -> Vec<Result<ModelEvent, ModelError>> {
    let mut early = Vec::new();
    let mut usage = None;
    loop {
        match answer.next().await {
            // A later report replaces this one.
            event @ Some(Ok(ModelEvent::Usage(_))) => usage = event,
            event @ Some(Ok(ModelEvent::Skipped(_) | ModelEvent::Trimmed)) => early.extend(event),
            decisive => {
                early.extend(usage.into_iter().chain(decisive));
                return early;
            }
        }
    }
}

/// Returns the model that the request chooses, if it is not the agent's own.
fn chosen_model(settings: &Settings, input: &RunAgentInput) -> Result<Option<String>, AgentError> {
    let shown = match input.forwarded_prop(MODEL) {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::String(name)) if name == settings.model.name() => return Ok(None),
        Some(Value::String(name)) if settings.options.models.contains(name) => {
            return Ok(Some(name.clone()));
        }
        Some(other) => other.to_string(),
    };
    let shown = short_name(&shown);
    let allowed = settings.allowed_models().collect::<Vec<_>>().join(", ");
    let message = format!("this agent may not use the model {shown}: choose one of {allowed}");
    Err(AgentError::new(RunErrorCode::ModelNotAllowed, message))
}

#[cfg(test)]
mod tests;
