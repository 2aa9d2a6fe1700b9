//! The content of an activity `agui-server.file`: a file that an agent, a tool or a model hands
//! over. Stored content has the file's id and provider; a client gets a URL in place of the
//! provider.

use serde_json::Value;

use super::{ActivityMessage, ContentPart, JsonObject, Message, PartSource, own_names::FILE};

/// The member with the file's URL.
pub const FILE_URL: &str = "url";
pub const FILE_ID: &str = "id";
/// The member with the provider that issued the id, as in the source of a part.
pub const FILE_PROVIDER: &str = "provider";
pub const FILE_TYPE: &str = "mimeType";
pub const FILE_NAME: &str = "name";

/// Returns the id of the file of this server that the content of an activity names.
pub fn stored_file_of_activity<'c>(
    activity_type: &str,
    content: &'c JsonObject,
) -> Option<&'c str> {
    let provider = content.get(FILE_PROVIDER).and_then(Value::as_str);
    let is_own = activity_type == FILE && provider == Some(PartSource::OWN_PROVIDER);
    content.get(FILE_ID).filter(|_| is_own)?.as_str()
}

impl ActivityMessage {
    /// Returns the content if the activity is a file.
    #[doc(hidden)]
    pub fn file(&self) -> Option<&JsonObject> {
        (self.activity_type == FILE).then_some(&self.content)
    }
}

impl Message {
    /// Returns the content of an activity that is a file, for changing it.
    #[doc(hidden)]
    pub fn file_activity_mut(&mut self) -> Option<&mut JsonObject> {
        match self {
            Self::Activity(activity) if activity.activity_type == FILE => {
                Some(&mut activity.content)
            }
            _ => None,
        }
    }

    /// Returns the ids of the files of this server that the message names.
    #[doc(hidden)]
    pub fn stored_files(&self) -> impl Iterator<Item = &str> {
        let activity = match self {
            Self::Activity(activity) => {
                stored_file_of_activity(&activity.activity_type, &activity.content)
            }
            _ => None,
        };
        self.parts().iter().filter_map(ContentPart::stored_file).chain(activity)
    }
}
