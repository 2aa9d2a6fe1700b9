//! Keeps requests within the context window of a model.
//!
//! [`FittedModel`] wraps a model. It estimates each request, and refuses or shortens one that is too
//! long. With the policy `summarise`, the agent replaces old messages by a summary first (`summarise`), which becomes a
//! message of the branch ([`history::summary`](super::history)); what then is still too long is left out.
//! [`MediaRetryModel`] keeps media within what the provider takes (`media_fit`), and asks again without those that it refuses.

mod estimate;
mod fitted;
#[cfg(feature = "image")]
pub(super) mod image_memory;
#[cfg(feature = "image")]
pub(super) mod image_scale;
#[cfg(not(feature = "image"))]
#[path = "no_image_scale.rs"]
mod image_scale;
mod media_fit;
mod media_retry;
mod model_window;
mod options;
mod summarise;
mod trim;

use std::sync::Arc;

use futures::StreamExt as _;

pub use self::options::{WindowOptions, WindowPolicy};
pub(super) use self::{fitted::FittedModel, media_retry::MediaRetryModel};
use super::model::{Model, ModelError, ModelEvent, ModelStream, SkippedAttachment};

impl WindowOptions {
    /// Returns the model with its requests kept within the window and asked again without refused media, such as for a
    /// fallback.
    pub fn fit(self, model: Arc<dyn Model>) -> Arc<dyn Model> {
        Arc::new(FittedModel::new(Arc::new(MediaRetryModel::new(model)), self))
    }
}

/// The beginning of an answer, which says whether the request was refused and may be asked again.
struct Beginning {
    /// The attachments that the request lacks. Reported once, with the request that is answered.
    skipped: Vec<SkippedAttachment>,
    /// The first event of the answer, or the failure.
    first: Option<Result<ModelEvent, ModelError>>,
}

impl Beginning {
    async fn read(answer: &mut ModelStream) -> Self {
        let mut skipped = Vec::new();
        loop {
            match answer.next().await {
                Some(Ok(ModelEvent::Skipped(attachment))) => skipped.push(attachment),
                first => return Self { skipped, first },
            }
        }
    }
}
