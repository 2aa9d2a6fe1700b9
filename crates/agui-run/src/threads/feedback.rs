//! Feedback of owners on messages.

use super::{ThreadError, Threads, error::MAX_COMMENT_BYTES};
use agui_protocol::MessageId;
use agui_store::{Feedback, ThreadKey, host::now};

impl Threads {
    /// Stores the owner's feedback on a message and logs it, without the comment. It replaces
    /// earlier feedback; without a score and a comment it only removes the earlier one.
    ///
    /// # Errors
    /// A [`ThreadError`]; nothing was stored.
    pub async fn give_feedback(
        &self,
        key: &ThreadKey,
        message: &MessageId,
        score: Option<f64>,
        comment: Option<String>,
    ) -> Result<(), ThreadError> {
        if comment.as_ref().is_some_and(|comment| comment.len() > MAX_COMMENT_BYTES) {
            return Err(ThreadError::CommentTooLong);
        }
        self.wait_if_abandoned(key).await;
        let thread = self.thread(key).await?;
        let feedback =
            Feedback { score, comment: comment.filter(|text| !text.trim().is_empty()), at: now() };
        let stored =
            Some(&feedback).filter(|given| given.score.is_some() || given.comment.is_some());
        if !self.core.store.set_feedback(thread.number, message, stored).await? {
            return Err(ThreadError::NoMessageYet);
        }
        let has_comment = feedback.comment.is_some();
        tracing::info!(
            thread = key.id.as_str(),
            message_id = message.as_str(),
            agent = thread.agent,
            ?score,
            has_comment,
            "feedback on a message"
        );
        Ok(())
    }
}
