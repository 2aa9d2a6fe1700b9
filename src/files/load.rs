//! The data of files for agents: a model, a remote agent or a Rust agent gets the bytes, as if they had come with the request.

use std::collections::HashMap;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;

use super::{Files, file_of_url};
use crate::{
    protocol::{ContentPart, Event, Message, Messages, PartSource},
    store::{StoreResult, files::StoredFile},
};

/// The most bytes of files that the input of a run gets. No provider takes a request of this size.
const MAX_LOADED_BYTES: u64 = 64 << 20;

/// Returns whether messages name files of this server.
pub(crate) fn names_files(messages: &[Message]) -> bool {
    messages.iter().flat_map(Message::parts).any(|part| part.source().and_then(file_of).is_some())
}

/// Returns the id of the file that a source names.
fn file_of(source: &PartSource) -> Option<&str> {
    match source {
        PartSource::Url { value, .. } => file_of_url(value),
        source => source.stored_file(),
    }
}

/// What an agent gets in place of a file.
enum Loaded {
    Data(PartSource),
    /// What is said of a file that the agent does not get.
    Note(&'static str),
}

/// The files of one input.
struct Loading<'a> {
    files: &'a Files,
    owner: &'a str,
    /// Those that were read, by their ids.
    read: HashMap<String, Option<(StoredFile, Bytes)>>,
    bytes_left: u64,
}

impl Files {
    /// Puts the data of an owner's files into messages that name them, the newest first. A file that was deleted, or for which
    /// there is no space, is a note.
    pub(crate) async fn load(&self, owner: &str, messages: &mut Messages) {
        let mut loading = Loading { files: self, owner, read: HashMap::new(), bytes_left: MAX_LOADED_BYTES };
        for message in messages.to_mut().iter_mut().rev() {
            for part in message.parts_mut().iter_mut().rev() {
                loading.fill(part).await;
            }
        }
    }
}

impl Loading<'_> {
    async fn fill(&mut self, part: &mut ContentPart) {
        let Some(media) = part.media_mut() else { return };
        let Some(id) = file_of(&media.source) else { return };
        let loaded = match self.load(id, &media.source).await {
            // The URL may be that of another server.
            Ok(None) if matches!(media.source, PartSource::Url { .. }) => return,
            Ok(loaded) => loaded.unwrap_or(Loaded::Note("It was deleted.")),
            Err(error) => {
                tracing::error!(file = id, ?error, "a file cannot be read, and its agent gets a note in its place");
                Loaded::Note("It cannot be read.")
            }
        };
        match loaded {
            Loaded::Data(data) => media.source = data,
            Loaded::Note(note) => {
                let name = media.file_name().map(|name| format!("\"{}\", ", name.replace(['"', '\n', '\r'], " ")));
                let mime_type = mime_type(&media.source).unwrap_or("a file");
                *part = ContentPart::text(format!("(Attached: {}{mime_type}. {note})", name.unwrap_or_default()));
            }
        }
    }

    /// Returns `None` for a file that does not exist.
    async fn load(&mut self, id: &str, source: &PartSource) -> StoreResult<Option<Loaded>> {
        if !self.read.contains_key(id) {
            let read = match self.files.file(Some(self.owner), id).await? {
                Some(file) if file.bytes > self.bytes_left => return Ok(Some(Loaded::left_out())),
                Some(file) => self.files.bytes(&file).await?.map(|bytes| (file, bytes)),
                None => None,
            };
            self.read.insert(id.to_owned(), read);
        }
        let Some(Some((file, bytes))) = self.read.get(id) else { return Ok(None) };
        let Some(left) = self.bytes_left.checked_sub(file.bytes) else { return Ok(Some(Loaded::left_out())) };
        self.bytes_left = left;
        let mime_type = mime_type(source).unwrap_or(&file.media_type).to_owned();
        Ok(Some(Loaded::Data(PartSource::Data { value: STANDARD.encode(bytes), mime_type })))
    }
}

impl Loaded {
    fn left_out() -> Self {
        Self::Note("It is left out: there are too many newer files in the conversation.")
    }
}

fn mime_type(source: &PartSource) -> Option<&str> {
    match source {
        PartSource::Data { mime_type, .. } => Some(mime_type),
        PartSource::Url { mime_type, .. } | PartSource::File { mime_type, .. } => mime_type.as_deref(),
    }
}

/// Names the files again in an agent's snapshot of messages, which has their data or, if the agent is at another server of this
/// kind, the URLs there. `given` are the messages of its input, before files were loaded.
pub(crate) fn name_again(event: &mut Event, given: &Messages) {
    let Event::MessagesSnapshot(snapshot) = event else { return };
    if !snapshot.messages.iter().any(|message| !message.parts().is_empty()) {
        return;
    }
    for message in snapshot.messages.to_mut() {
        let Some(given) = given.position(message.id()).map(|at| &given[at]) else { continue };
        if given.role() != message.role() || given.parts().len() != message.parts().len() {
            continue;
        }
        for (part, given) in message.parts_mut().iter_mut().zip(given.parts()) {
            let is_loaded = match part.source() {
                None => true,
                Some(PartSource::Data { .. }) => true,
                Some(source) => file_of(source).is_some(),
            };
            if is_loaded && given.source().is_some_and(|source| file_of(source).is_some()) {
                part.clone_from(given);
            }
        }
    }
}
