//! Keeps requests within the context window of a model.
//!
//! [`FittedModel`] wraps a model. It estimates each request, and refuses or shortens one that is too
//! long. With the policy `summarise`, the agent replaces old messages by a summary first (`summarise`), which becomes a
//! message of the branch ([`history::summary`](super::history)); what then is still too long is left out.

mod estimate;
mod fitted;
mod options;
mod summarise;
mod trim;
mod window;

use std::sync::Arc;

pub(super) use self::fitted::FittedModel;
pub use self::options::{ContextOptions, ContextPolicy};
use super::model::Model;

impl ContextOptions {
    /// Returns the model with its requests kept within the window, such as for a fallback.
    pub fn fit(self, model: Arc<dyn Model>) -> Arc<dyn Model> {
        Arc::new(FittedModel::new(model, self))
    }
}
