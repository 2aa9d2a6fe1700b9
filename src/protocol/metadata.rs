//! Metadata: what anybody may add to a message, a tool call, an event.

use std::ops::{Deref, DerefMut};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::JsonObject;

/// Members of a provider's or application's own. A `null` under a key is data.
///
/// Most of what can have metadata has none, and there are thousands of messages, so this takes no more room
/// than a pointer until there is something in it. It reads and changes like the [`JsonObject`] that it holds.
///
/// ```
/// use agui_server::protocol::{JsonObject, Message, Metadata};
/// let mut message = Message::user("m1", "Hello");
/// message.metadata_mut().get_or_insert_default().insert("mood".to_owned(), "good".into());
/// assert_eq!(message.metadata_mut().as_ref().unwrap()["mood"], "good");
/// assert_eq!(size_of::<Option<Metadata>>(), size_of::<usize>());
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Metadata(Box<JsonObject>);

impl Deref for Metadata {
    type Target = JsonObject;
    fn deref(&self) -> &JsonObject {
        &self.0
    }
}

impl DerefMut for Metadata {
    fn deref_mut(&mut self) -> &mut JsonObject {
        &mut self.0
    }
}

impl From<JsonObject> for Metadata {
    fn from(object: JsonObject) -> Self {
        Self(Box::new(object))
    }
}

impl From<Metadata> for JsonObject {
    fn from(metadata: Metadata) -> Self {
        *metadata.0
    }
}

impl FromIterator<(String, Value)> for Metadata {
    fn from_iter<I: IntoIterator<Item = (String, Value)>>(members: I) -> Self {
        JsonObject::from_iter(members).into()
    }
}
