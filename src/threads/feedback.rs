//! Feedback of owners on messages.

use super::Threads;
use super::views::LookupError;
use crate::{
    agent::Principal,
    protocol::{MessageId, ThreadId},
    store::{Feedback, StoreError, now},
};

/// The longest comment, in bytes.
pub(crate) const MAX_COMMENT_BYTES: usize = 8 * 1024;

/// The reason that feedback was not stored.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum FeedbackError {
    /// The thread was not found.
    #[error(transparent)]
    Lookup(#[from] LookupError),
    /// The thread has no such message. Messages of a run are stored when it ends.
    #[error("the thread has no such message; the messages of a run are stored when it ends")]
    NoMessage,
    /// The comment is too long.
    #[error("the comment has more than {MAX_COMMENT_BYTES} bytes")]
    CommentTooLong,
}

impl From<StoreError> for FeedbackError {
    fn from(error: StoreError) -> Self {
        Self::Lookup(error.into())
    }
}

impl Threads {
    /// Stores a principal's feedback on a message and logs it, without the comment. It replaces earlier feedback; without a
    /// score and a comment it removes it.
    ///
    /// # Errors
    /// A [`FeedbackError`]; nothing was stored.
    pub(crate) async fn give_feedback(
        &self,
        owner: Option<&Principal>,
        id: &ThreadId,
        message: &MessageId,
        score: Option<f64>,
        comment: Option<String>,
    ) -> Result<(), FeedbackError> {
        if comment.as_ref().is_some_and(|comment| comment.len() > MAX_COMMENT_BYTES) {
            return Err(FeedbackError::CommentTooLong);
        }
        let key = self.runs.key(owner, id);
        self.wait_if_abandoned(&key).await;
        let thread = self.header(&key).await?;
        let feedback = Feedback { score, comment: comment.filter(|text| !text.trim().is_empty()), at: now() };
        let stored = Some(&feedback).filter(|it| it.score.is_some() || it.comment.is_some());
        if !self.runs.store.call("set_feedback", |store| store.set_feedback(thread.number, message, stored)).await? {
            return Err(FeedbackError::NoMessage);
        }
        let has_comment = feedback.comment.is_some();
        tracing::info!(thread = ?id, ?message, agent = thread.agent, ?score, has_comment, "feedback on a message");
        Ok(())
    }
}
