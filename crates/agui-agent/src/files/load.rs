//! The data of files for agents: a model, a remote agent or a Rust agent gets the bytes, as if they had come with the request.

use std::collections::HashMap;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use serde_json::Value;

use super::{Files, has_media, shared::data_url, signed_url::file_of};
use agui_protocol::{
    ContentPart, Event, JsonObject, Message, Messages, PartSource, Role,
    file_activity::{FILE_PROVIDER, FILE_TYPE, FILE_URL, stored_file_of_activity},
    own_names::FILE,
};
use agui_store::{files::StoredFile, host::StoreResult};

/// Bytes of files that the input of a run, or an export, gets. No provider takes a request of this
/// size.
pub const MAX_LOADED_BYTES: u64 = 64 << 20;
/// Bytes of files for an agent at another server: 8 MiB as base64. Servers refuse larger bodies;
/// this one refuses more than 10 MiB.
const MAX_REMOTE_BYTES: u64 = 6 << 20;

/// Returns whether messages name files of this server.
pub fn names_files(messages: &[Message]) -> bool {
    let is_of_file = |part: &ContentPart| part.source().and_then(file_of).is_some();
    messages.iter().any(|message| {
        message.stored_files().next().is_some() || message.parts().iter().any(is_of_file)
    })
}

/// The receiver of the data of files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoadedFor {
    /// An agent. A note replaces a file that is not loaded.
    Agent,
    /// An agent at another server, with fewer bytes.
    RemoteAgent,
    /// An export. A file that is not loaded stays unchanged.
    Export,
}

/// The parts that name files, the newest first.
pub struct Loading<'m> {
    files: Files,
    /// The parts, each with its file, or with the note that replaces a file that is not loaded.
    parts: Vec<(FilePlace<'m>, Result<StoredFile, &'static str>)>,
    bytes: u64,
    reader: LoadedFor,
}

/// A place that names a file.
enum FilePlace<'m> {
    Part(&'m mut ContentPart),
    Activity(&'m mut JsonObject),
}

impl Files {
    /// Looks up the files that an owner's messages name, the newest first, up to the limit of
    /// bytes.
    pub async fn loading<'m>(
        &self,
        owner: &str,
        messages: Vec<&'m mut Message>,
        reader: LoadedFor,
    ) -> StoreResult<Loading<'m>> {
        let mut known = HashMap::new();
        let mut parts = Vec::new();
        let mut bytes = 0;
        let max_bytes =
            if reader == LoadedFor::RemoteAgent { MAX_REMOTE_BYTES } else { MAX_LOADED_BYTES };
        for message in messages.into_iter().rev() {
            for place in places(message, reader).into_iter().rev() {
                let Some(id) = place.file() else { continue };
                let found = match self.known_file(owner, id, &mut known).await? {
                    Some(file) if bytes + file.bytes <= max_bytes => {
                        bytes += file.bytes;
                        Ok(file.clone())
                    }
                    Some(_) => Err(
                        "It is left out: the newer files of this conversation have too many bytes.",
                    ),
                    // The URL may belong to another server.
                    None if matches!(&place, FilePlace::Part(part) if matches!(part.source(), Some(PartSource::Url { .. }))) =>
                    {
                        continue;
                    }
                    None => Err("It was deleted."),
                };
                parts.push((place, found));
            }
        }
        Ok(Loading { files: self.clone(), parts, bytes, reader })
    }

    /// Returns a file of an owner, and reads it only once.
    pub(super) async fn known_file<'k>(
        &self,
        owner: &str,
        id: &str,
        known: &'k mut HashMap<String, Option<StoredFile>>,
    ) -> StoreResult<Option<&'k StoredFile>> {
        if !known.contains_key(id) {
            known.insert(id.to_owned(), self.file(Some(owner), id).await?);
        }
        Ok(known.get(id).and_then(Option::as_ref))
    }
}

impl Loading<'_> {
    /// Returns the size of the data as base64.
    pub fn bytes(&self) -> u64 {
        self.bytes.div_ceil(3) * 4
    }

    /// Puts the data of the files into the messages.
    pub async fn load(self) {
        let mut read: HashMap<String, Option<Bytes>> = HashMap::new();
        for (place, found) in self.parts {
            let note = match found {
                Err(note) => note,
                Ok(file) => {
                    if !read.contains_key(&file.id) {
                        let bytes = self.files.bytes(&file).await;
                        let log = |error: &_| {
                            tracing::error!(file = file.id, ?error, "a file cannot be read")
                        };
                        read.insert(file.id.clone(), bytes.inspect_err(log).ok().flatten());
                    }
                    if let Some(Some(bytes)) = read.get(&file.id) {
                        place.put(&file.media_type, bytes);
                        continue;
                    }
                    "It cannot be read."
                }
            };
            if let FilePlace::Part(part) = place
                && self.reader != LoadedFor::Export
            {
                replace_by_note(part, note);
            }
        }
    }
}

/// Returns the places of a message that may name files.
fn places(message: &mut Message, reader: LoadedFor) -> Vec<FilePlace<'_>> {
    if !matches!(message, Message::Activity(_)) {
        return message.parts_mut().iter_mut().map(FilePlace::Part).collect();
    }
    // Models get only the images of the agents' files.
    let is_image = |content: &JsonObject| {
        content
            .get(FILE_TYPE)
            .and_then(Value::as_str)
            .is_some_and(|mime_type| mime_type.starts_with("image/"))
    };
    let activity = message
        .file_activity_mut()
        .filter(|content| reader == LoadedFor::Export || is_image(content));
    activity.map(FilePlace::Activity).into_iter().collect()
}

impl FilePlace<'_> {
    fn file(&self) -> Option<&str> {
        match self {
            Self::Part(part) => part.source().and_then(file_of),
            Self::Activity(content) => stored_file_of_activity(FILE, content),
        }
    }

    /// Writes the data of the file into its place.
    fn put(self, media_type: &str, bytes: &[u8]) {
        match self {
            Self::Part(part) => {
                let Some(media) = part.media_mut() else { return };
                let mime_type = media.source.mime_type().unwrap_or(media_type).to_owned();
                media.source = PartSource::Data { value: STANDARD.encode(bytes), mime_type };
            }
            Self::Activity(content) => {
                content.remove(FILE_PROVIDER);
                content.insert(FILE_URL.to_owned(), data_url(media_type, bytes).into());
            }
        }
    }
}

fn replace_by_note(part: &mut ContentPart, note: &str) {
    let Some(media) = part.media_mut() else { return };
    let name =
        media.file_name().map(|name| format!("\"{}\", ", name.replace(['"', '\n', '\r'], " ")));
    let (name, mime_type) =
        (name.unwrap_or_default(), media.source.mime_type().unwrap_or("a file"));
    *part = ContentPart::text(format!("(Attached: {name}{mime_type}. {note})"));
}

/// Replaces data by file names in an agent's snapshot of messages. The snapshot has the files' data
/// or, from another agui-server, the URLs there. `given` are the messages of the agent's input,
/// before files were loaded.
pub fn name_again(event: &mut Event, given: &Messages) {
    let Event::MessagesSnapshot(snapshot) = event else { return };
    if !snapshot.messages.iter().any(has_media) {
        return;
    }
    for message in snapshot.messages.to_mut() {
        let Some(given) = given.position(message.id()).map(|at| &given[at]) else { continue };
        if has_media(message)
            && given.stored_files().next().is_some()
            && given.role() == Role::Activity
        {
            message.clone_from(given);
            continue;
        }
        if given.role() != message.role() || given.parts().len() != message.parts().len() {
            continue;
        }
        for (part, given) in message.parts_mut().iter_mut().zip(given.parts()) {
            let is_loaded =
                |source| matches!(source, &PartSource::Data { .. }) || file_of(source).is_some();
            if part.source().is_none_or(is_loaded)
                && given.source().is_some_and(|source| file_of(source).is_some())
            {
                part.clone_from(given);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;
    use crate::files::{FileOptions, Upload};
    use agui_store::{MemoryStore, Store, files::FileDeletion};

    async fn given(files: &Files, mut messages: Messages) -> Vec<ContentPart> {
        let loading = files
            .loading("key:ann", messages.to_mut().iter_mut().collect(), LoadedFor::Agent)
            .await
            .unwrap();
        loading.load().await;
        messages.iter().flat_map(Message::parts).cloned().collect()
    }

    fn files() -> Files {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        Files::from_store(&store, FileOptions::default()).unwrap()
    }

    #[tokio::test]
    async fn a_file_that_was_deleted_is_a_note() {
        let files = files();
        let upload = Upload {
            owner: "key:ann",
            bytes: b"abc"[..].into(),
            media_type: "image/png",
            name: None,
        };
        let id = files.put(upload).await.unwrap().file.id;
        let source = PartSource::from_stored_file(&id, "image/png");
        let part: ContentPart = serde_json::from_value(
            json!({ "type": "image", "source": source, "metadata": { "filename": "my \"cat\".png" } }),
        )
        .unwrap();
        let messages = Messages::from(vec![Message::user("m", vec![part])]);
        assert!(matches!(
            given(&files, messages.clone()).await[0].source(),
            Some(PartSource::Data { .. })
        ));
        files.delete("key:ann", &id, FileDeletion::EvenIfUsed).await.unwrap();
        let note = ContentPart::text("(Attached: \"my  cat .png\", image/png. It was deleted.)");
        assert_eq!(given(&files, messages).await, [note]);
    }

    #[tokio::test]
    async fn the_newest_64_mib_of_files_are_loaded() {
        let files = files();
        let bytes = vec![7; 16 << 20].into();
        let upload = Upload { owner: "key:ann", bytes, media_type: "image/png", name: None };
        let id = files.put(upload).await.unwrap().file.id;
        let image = || ContentPart::image(PartSource::from_stored_file(&id, "image/png"));
        let messages: Messages =
            (0..5).map(|n| Message::user(format!("m{n}"), vec![image()])).collect();
        let given = given(&files, messages).await;
        let is_data = |part: &ContentPart| matches!(part.source(), Some(PartSource::Data { .. }));
        assert_eq!(given.iter().map(is_data).collect::<Vec<_>>(), [false, true, true, true, true]);
        let ContentPart::Text(note) = &given[0] else { panic!("{:?}", given[0]) };
        assert!(note.text.starts_with("(Attached: image/png. It is left out: "), "{}", note.text);
    }
}
