//! Files as clients get them: by signed URLs.

use std::sync::Arc;

use super::UrlSigner;
use agui_protocol::{
    ContentPart, Event, JsonObject, Message, MessageContent, PartSource,
    file_activity::{FILE_PROVIDER, FILE_URL, stored_file_of_activity},
};
use agui_store::host::now;

/// A part of the JSON of each source that names a file of this server.
pub const OWN_FILE: &str = "\"provider\":\"agui-server\"";

/// Writes the URLs of files for one client.
pub struct FileUrls {
    /// The signer. Without it, URLs open their file only with a credential.
    signer: Option<UrlSigner>,
    owner: Arc<str>,
    /// The URL of this server, without a slash at its end.
    base: String,
}

impl FileUrls {
    /// `base` is the URL of this server.
    pub fn new(signer: Option<UrlSigner>, owner: Arc<str>, base: &str) -> Self {
        Self { signer, owner, base: base.trim_end_matches('/').to_owned() }
    }

    /// Returns the URL of a file.
    pub fn url(&self, id: &str) -> String {
        let path = match &self.signer {
            Some(signer) => signer.path(&self.owner, id, now()),
            None => format!("/files/{id}?signature="),
        };
        format!("{}{path}", self.base)
    }

    /// Replaces the ids of files in messages by URLs.
    pub fn present<'m>(&self, messages: impl IntoIterator<Item = &'m mut Message>) {
        for message in messages {
            match message {
                Message::Activity(activity) => {
                    self.present_activity(&activity.activity_type, &mut activity.content)
                }
                message => message.parts_mut().iter_mut().for_each(|part| self.present_part(part)),
            }
        }
    }

    fn present_part(&self, part: &mut ContentPart) {
        let Some(media) = part.media_mut() else { return };
        if let Some(id) = media.source.stored_file() {
            let value = self.url(id);
            let PartSource::File { mime_type, .. } = &mut media.source else { return };
            media.source = PartSource::Url { value, mime_type: mime_type.take() };
        }
    }

    fn present_activity(&self, activity_type: &str, content: &mut JsonObject) {
        if let Some(id) = stored_file_of_activity(activity_type, content) {
            let url = self.url(id);
            content.remove(FILE_PROVIDER);
            content.insert(FILE_URL.to_owned(), url.into());
        }
    }

    /// Returns a line of a log with URLs, or `None` if it names no files.
    pub fn line(&self, json: &str) -> Option<String> {
        let mut event = event_of_line(json)?;
        self.present_event(&mut event);
        serde_json::to_string(&event).ok()
    }

    /// Replaces the ids of files in an event by URLs, if it names files ([`event_names_files`]).
    pub fn present_event(&self, event: &mut Event) {
        match event {
            Event::MessagesSnapshot(snapshot) => self.present(snapshot.messages.to_mut()),
            Event::ToolCallResult(result) => {
                if let MessageContent::Parts(parts) = &mut result.content {
                    parts.iter_mut().for_each(|part| self.present_part(part));
                }
            }
            Event::ActivitySnapshot(activity) => {
                self.present_activity(&activity.activity_type, &mut activity.content);
            }
            _ => {}
        }
    }
}

/// Returns whether an event names files, so that a client gets another event.
pub fn event_names_files(event: &Event) -> bool {
    match event {
        Event::MessagesSnapshot(snapshot) => {
            snapshot.messages.iter().flat_map(Message::stored_files).next().is_some()
        }
        Event::ActivitySnapshot(activity) => {
            stored_file_of_activity(&activity.activity_type, &activity.content).is_some()
        }
        Event::ToolCallResult(result) => match &result.content {
            MessageContent::Parts(parts) => parts.iter().any(|part| part.stored_file().is_some()),
            MessageContent::Text(_) => false,
        },
        _ => false,
    }
}

/// Returns the event of a line of a log, if it names files.
pub fn event_of_line(json: &str) -> Option<Event> {
    // The type is the first member of an event's JSON.
    let is_of = |event_type: &str| {
        json.strip_prefix("{\"type\":\"").is_some_and(|rest| rest.starts_with(event_type))
    };
    let may_name =
        ["MESSAGES_SNAPSHOT\"", "TOOL_CALL_RESULT\"", "ACTIVITY_SNAPSHOT\""].into_iter().any(is_of);
    if !may_name || !json.contains(OWN_FILE) {
        return None;
    }
    serde_json::from_str(json).ok().filter(event_names_files)
}
