//! Changes a thread by its owner.

use super::{Database, words::words_of_title};
use crate::{
    protocol::MessageId,
    store::{
        Feedback, StoreError, ThreadUpdate, ThreadVersion,
        text::{UpdateColumns, name_to_text, to_json},
    },
};

/// `$8` is the new head, or NULL; `$11` has the words of the title.
const UPDATE: &str = "
    WITH thread AS (
        UPDATE agui_threads SET version = version + 1,
            title = CASE WHEN $3 THEN $4 ELSE title END,
            archived = COALESCE($5, archived),
            metadata = CASE WHEN $6 THEN $7 ELSE metadata END,
            head = COALESCE($8, head),
            state = CASE WHEN $8 IS NULL THEN state ELSE $9 END,
            interrupts = CASE WHEN $8 IS NULL THEN interrupts ELSE $10 END
        WHERE number = $1 AND version = $2 AND ($8 IS NULL OR holder IS NULL)
        RETURNING number, owner
    ), words AS (
        INSERT INTO agui_words (thread, message, words)
        SELECT number, 0, replace($11, '@', agui_owner_word(owner))::tsvector FROM thread WHERE $11::text IS NOT NULL
        ON CONFLICT (thread, message) DO UPDATE SET words = excluded.words
    ), removed AS (
        DELETE FROM agui_words AS w USING thread
        WHERE w.thread = thread.number AND message = 0 AND $3 AND $11::text IS NULL
    )
    SELECT number FROM thread";

const SET_FEEDBACK: &str = "
    UPDATE agui_messages SET feedback = $3 WHERE thread = $1
        AND number = (SELECT MAX(number) FROM agui_messages WHERE thread = $1 AND id = $2) RETURNING number";

impl Database {
    pub(super) async fn set_feedback(
        &self,
        thread: i64,
        message: &MessageId,
        feedback: Option<&Feedback>,
    ) -> Result<bool, StoreError> {
        let query = sqlx::query(SET_FEEDBACK).bind(thread).bind(name_to_text(message).into_owned());
        Ok(self.first(query.bind(feedback.map(to_json))).await?.is_some())
    }

    pub(super) async fn update(&self, expected: ThreadVersion, update: &ThreadUpdate<'_>) -> Result<bool, StoreError> {
        let new = UpdateColumns::new(update);
        let query = sqlx::query(UPDATE).bind(expected.number).bind(expected.version).bind(new.sets_title);
        let query = query.bind(new.title).bind(new.archived).bind(new.sets_metadata).bind(new.metadata);
        let query = query.bind(new.head).bind(new.state).bind(new.interrupts);
        let query = query.bind(update.title.flatten().map(words_of_title));
        Ok(self.first(query).await?.is_some())
    }
}
