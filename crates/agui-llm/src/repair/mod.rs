//! Asks a model again in a poorer form when its provider refuses a request.
//!
//! [`LadderModel`] wraps every model that an agent can ask. [`policy`](self::policy) has the whole rule, and
//! [`memory`](self::memory) what helped. Retries of failures that pass are below it, in the transport; estimates before a
//! request is sent are above it, in [`FittedModel`].

mod facts;
mod ladder;
mod media;
mod memory;
mod names;
mod parameters;
mod policy;

use std::sync::Arc;

pub(crate) use self::ladder::LadderModel;
use crate::{
    model::Model,
    window::{FittedModel, ModelWindow, WindowOptions},
};

/// Returns a model whose requests are kept within a window, and are asked again in poorer forms.
pub(crate) fn fitted(model: Arc<dyn Model>, mut options: WindowOptions) -> FittedModel {
    let summariser = options.summariser.take();
    options.summariser = summariser.map(|model| Arc::new(LadderModel::new(model)) as _);
    let window = Arc::new(ModelWindow::new(options));
    FittedModel::new(Arc::new(LadderModel::within(model, window.clone())), window)
}

impl WindowOptions {
    /// Returns the model with its requests kept within the window and asked again in poorer forms after refusals, such as
    /// for a fallback.
    pub fn fit(self, model: Arc<dyn Model>) -> Arc<dyn Model> {
        Arc::new(fitted(model, self))
    }
}

#[cfg(test)]
mod tests;
