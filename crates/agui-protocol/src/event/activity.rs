//! Activities: structured progress that a user interface shows as a widget.

use super::base::event;
use crate::{JsonObject, JsonPatch, MessageId, PatchOperation};

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
    } optional {
        /// `false` keeps an existing activity. The default is `true`.
        replace: bool,
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
