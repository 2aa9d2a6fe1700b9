//! Activities: structured progress that a user interface shows as a widget of its own.

use super::{BaseEvent, event};
use crate::protocol::{JsonObject, JsonPatch, MessageId};

event! {
    /// Creates or replaces an activity message.
    ActivitySnapshot {
        /// The activity message.
        message_id: MessageId,
        /// What kind of activity it is; the set is the producer's own.
        activity_type: String,
        /// The activity itself, open by key.
        content: JsonObject,
        /// `false` leaves an existing activity as it stands; absent means that it is replaced.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        replace: Option<bool>,
    }
}

event! {
    /// Amends an activity that a snapshot has created.
    ActivityDelta {
        /// The activity message.
        message_id: MessageId,
        /// What kind of activity it now is.
        activity_type: String,
        /// The patch, against the activity's content.
        patch: JsonPatch,
    }
}

impl ActivitySnapshot {
    /// Creates or replaces an activity.
    pub fn new(message_id: impl Into<MessageId>, activity_type: impl Into<String>, content: JsonObject) -> Self {
        Self {
            message_id: message_id.into(),
            activity_type: activity_type.into(),
            content,
            replace: None,
            subagent_run_id: None,
            base: BaseEvent::default(),
        }
    }
}

impl ActivityDelta {
    /// Amends an activity.
    pub fn new(message_id: impl Into<MessageId>, activity_type: impl Into<String>, patch: JsonPatch) -> Self {
        Self {
            message_id: message_id.into(),
            activity_type: activity_type.into(),
            patch,
            subagent_run_id: None,
            base: BaseEvent::default(),
        }
    }
}
