//! The beginning of an answer, which says whether the request was refused and may be asked again.

use futures::StreamExt as _;

use crate::llm::model::{ModelError, ModelEvent, ModelStream, SkippedAttachment};

/// What comes before a request is answered or refused.
pub(super) struct Beginning {
    /// What the request lacks. It is reported once, with the request that is answered.
    pub(super) skipped: Vec<SkippedAttachment>,
    /// The first event of the answer, or the failure.
    pub(super) first: Option<Result<ModelEvent, ModelError>>,
}

impl Beginning {
    pub(super) async fn read(answer: &mut ModelStream) -> Self {
        let mut skipped = Vec::new();
        loop {
            match answer.next().await {
                Some(Ok(ModelEvent::Skipped(attachment))) => skipped.push(attachment),
                first => return Self { skipped, first },
            }
        }
    }
}
