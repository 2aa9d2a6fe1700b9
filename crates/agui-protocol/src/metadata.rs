//! Metadata of messages, tool calls, tools, interrupts and events.

use std::ops::{Deref, DerefMut};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::JsonObject;

/// An open object for a provider's or an application's data. A `null` under a key is data.
///
/// Boxed, because most messages have none: `Option<Metadata>` has the size of a pointer.
///
/// ```
/// use agui_protocol::{JsonObject, Message, Metadata};
/// let mut message = Message::user("m1", "Hello");
/// message.metadata_mut().get_or_insert_default().insert("mood".to_owned(), "good".into());
/// assert_eq!(message.metadata_mut().as_ref().unwrap()["mood"], "good");
/// assert_eq!(size_of::<Option<Metadata>>(), size_of::<usize>());
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(transparent)]
#[schema(value_type = Object, description = "An open object for a provider's or an application's data.")]
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
