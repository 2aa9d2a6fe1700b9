//! A model whose requests are kept within its window.

use std::sync::Arc;

use async_stream::stream;
use futures::StreamExt as _;

use super::{
    estimate,
    model_window::{Asked, ModelWindow},
    options::{CONTEXT_TOO_LONG, WindowPolicy},
    trim,
};
use crate::model::{Model, ModelError, ModelEvent, ModelRequest, ModelStream, delegate_model};

/// More than the excess is left out, in whole quarters of the limit. So the next requests leave out
/// the same part, and their beginning stays in the provider's cache.
const PARTS_OF_LIMIT: u64 = 4;

/// Refuses or shortens requests that do not fit, by the window's policy.
pub(crate) struct FittedModel {
    pub(super) model: Arc<dyn Model>,
    pub(super) window: Arc<ModelWindow>,
}

impl FittedModel {
    pub(crate) fn new(model: Arc<dyn Model>, window: Arc<ModelWindow>) -> Self {
        Self { model, window }
    }
}

impl Model for FittedModel {
    delegate_model!(model);

    fn stream(&self, mut request: ModelRequest) -> ModelStream {
        let (model, window) = (self.model.clone(), self.window.clone());
        let stream = stream! {
            let asked = Asked::new(request.thread.as_ref(), &request, &*model);
            match fit(&mut request, &asked, &window) {
                Ok(false) => {}
                Ok(true) => yield Ok(ModelEvent::Trimmed),
                Err(error) => {
                    yield Err(error.into_final());
                    return;
                }
            }
            let estimate = estimate::request_tokens(&request);
            // Later requests of the thread use what is learned, so a guess must not be learned.
            let mut may_count = !estimate::is_rough(&request);
            let mut answer = model.stream(request);
            while let Some(event) = answer.next().await {
                match &event {
                    // A shorter request was answered.
                    Ok(ModelEvent::Trimmed) => may_count = false,
                    // The first count is that of this request. Later ones can be sums with continued requests.
                    Ok(ModelEvent::Usage(usage)) if may_count => {
                        if let Some(tokens) = usage.input_tokens {
                            window.counted(&asked, estimate, tokens);
                            may_count = false;
                        }
                    }
                    _ => {}
                }
                yield event;
            }
        };
        stream.boxed()
    }
}

/// Returns whether the beginning of the conversation was left out.
fn fit(
    request: &mut ModelRequest,
    asked: &Asked,
    window: &ModelWindow,
) -> Result<bool, ModelError> {
    let estimate = estimate::request_tokens(request);
    if window.options.policy == WindowPolicy::Fail {
        let Some(tokens) = window.is_surely_exceeded(asked, estimate) else {
            return Ok(false);
        };
        let about = window.corrected(asked, estimate);
        let message = format!(
            "The conversation is too long for the model: about {about} tokens, of at most {tokens}; start a new one"
        );
        return Err(ModelError::new(CONTEXT_TOO_LONG, message));
    }
    let Some(limit) = window.limit(asked).filter(|limit| estimate > *limit) else {
        return Ok(false);
    };
    let part = (limit / PARTS_OF_LIMIT).max(1);
    let excess = (estimate - limit).div_ceil(part) * part;
    let is_trimmed = trim::trim(&mut request.steps, excess);
    if is_trimmed {
        tracing::info!(
            model = asked.model,
            estimate,
            limit,
            "left out the beginning of a conversation that is too long"
        );
    }
    Ok(is_trimmed)
}
