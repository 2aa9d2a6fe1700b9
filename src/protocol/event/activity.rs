//! Activities: structured progress that a user interface shows as a widget.

use super::base::{BaseEvent, event};
use crate::protocol::{JsonObject, JsonPatch, MessageId, PatchOperation};

event! {
    /// Creates or replaces an activity.
    ActivitySnapshot {
        /// The activity message.
        message_id: MessageId,
        /// The type of activity, named by its producer.
        activity_type: String,
        /// The activity, open by key.
        #[schema(value_type = Object)]
        content: JsonObject,
        /// `false` keeps an existing activity. The default is `true`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        replace: Option<bool>,
    }
}

event! {
    /// Changes an activity.
    ActivityDelta {
        /// The activity message.
        message_id: MessageId,
        /// The type of the activity from now on.
        activity_type: String,
        /// The patch of the activity's content.
        #[schema(value_type = Vec<PatchOperation>)]
        patch: JsonPatch,
    }
}

impl ActivitySnapshot {
    /// Creates an event that creates or replaces an activity.
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
    /// Creates an event that changes an activity.
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
