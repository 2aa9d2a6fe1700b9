//! Keeps requests within the context window of a model.
//!
//! [`FittedModel`](fitted::FittedModel) wraps a model. It estimates each request, and refuses or shortens one that is too
//! long. With the policy `summarise`, the agent replaces old messages by a summary first (`summarise`), which becomes a
//! message of the branch ([`history::summary`](super::history)); what then is still too long is left out.

mod estimate;
mod fitted;
mod options;
mod summarise;
mod trim;
mod window;

use std::sync::Arc;

pub use self::options::{ContextOptions, ContextPolicy};
use self::{fitted::FittedModel, window::ContextWindow};
use super::model::Model;
use crate::{
    agent::RunContext,
    llm::model::{ModelError, ModelRequest},
    protocol::{Event, Message},
};

impl ContextOptions {
    /// Returns the model with its requests kept within the window, such as for a fallback.
    pub fn fit(self, model: Arc<dyn Model>) -> Arc<dyn Model> {
        ModelContext::fit(model, self).1
    }
}

/// The context window of an agent's model.
#[derive(Clone)]
pub(super) struct ModelContext {
    model: Arc<dyn Model>,
    window: Arc<ContextWindow>,
}

impl ModelContext {
    /// Returns the model with its requests kept within the window, beside the context.
    pub(super) fn fit(model: Arc<dyn Model>, options: ContextOptions) -> (Self, Arc<dyn Model>) {
        let window = Arc::new(ContextWindow::new(options));
        let fitted = Arc::new(FittedModel::new(model.clone(), window.clone()));
        (Self { model, window }, fitted)
    }

    /// Replaces the oldest turns of a request that is too long by a summary, which becomes the last of `messages`.
    /// Returns the event that stores the summary; `None` if the request fits or there is nothing to summarise.
    ///
    /// # Errors
    /// The summariser failed. The request is then as before.
    pub(super) async fn summarise(
        &self,
        request: &mut ModelRequest,
        messages: &mut Vec<Message>,
        cx: &RunContext,
    ) -> Result<Option<Event>, ModelError> {
        let options = &self.window.options;
        if options.policy != ContextPolicy::Summarise {
            return Ok(None);
        }
        let summariser = options.summariser.as_deref().unwrap_or(&*self.model);
        let name = request.model.clone().unwrap_or_else(|| self.model.name().to_owned());
        summarise::summarise(summariser, &self.window, &name, request, messages, cx).await
    }
}
