//! Files that an agent, a tool or a model gives to the user in a run: each is an activity
//! `agui-server.file`.

use std::sync::Arc;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;

use super::{Files, Upload, UploadError, image_size, inline_data::decoded, shown_type};
use agui_protocol::{
    Event, JsonObject, MessageId, PartSource,
    event::ActivitySnapshot,
    file_activity::{FILE_ID, FILE_NAME, FILE_PROVIDER, FILE_TYPE, FILE_URL},
    own_names::FILE,
};
use agui_store::files::ImageSize;

/// The largest file whose bytes are in the event, if the store keeps no files. Clients read events up to 4 MiB, of which 16 KiB are
/// for the other members of the event.
const MAX_EVENT_FILE_BYTES: usize = (3 << 20) - (16 << 10);

/// The files of the owner of a run.
#[derive(Clone)]
pub struct RunFiles {
    pub files: Files,
    pub owner: Arc<str>,
}

/// A file for the user.
#[derive(Debug, Clone)]
pub struct SharedFile {
    pub bytes: Bytes,
    /// The declared type. It counts if the bytes show no other type.
    pub media_type: String,
    pub name: Option<String>,
}

impl SharedFile {
    /// Returns the file of a medium that a model made, or `None` for invalid base64.
    pub async fn from_data(base64: String, media_type: String) -> Option<Self> {
        let source = PartSource::Data { value: base64, mime_type: media_type };
        // 20 MiB take about 15 ms.
        let decoded = tokio::task::spawn_blocking(move || decoded(&source)).await.ok().flatten();
        let Some((bytes, declared)) = decoded else {
            tracing::warn!("left out a picture of a model that is not base64");
            return None;
        };
        let media_type = shown_type(&bytes, &declared).unwrap_or(&declared).to_owned();
        let (kind, subtype) = media_type.split_once('/').unwrap_or(("file", "bin"));
        let extension = subtype.split([';', '+']).next().unwrap_or_default();
        let name = format!("{kind}.{}", if extension == "jpeg" { "jpg" } else { extension });
        Some(Self { bytes: bytes.into(), media_type, name: Some(name) })
    }

    /// Returns the size of the largest file for the user.
    pub fn max_bytes(files: Option<&RunFiles>) -> usize {
        let stored = files.map(|files| files.files.options().max_file_bytes);
        stored.map_or(MAX_EVENT_FILE_BYTES, |most| usize::try_from(most).unwrap_or(usize::MAX - 1))
    }

    /// Stores the file. Without stored files, the event has the bytes.
    pub async fn into_event(self, files: Option<&RunFiles>) -> Result<Event, UploadError> {
        let content = match files {
            Some(files) => files.put(self).await?,
            None => self.into_content(),
        };
        Ok(event(content))
    }

    /// Does the same as [`into_event`](Self::into_event). A file that cannot be stored becomes an
    /// activity with the problem.
    pub async fn into_event_or_problem(self, files: Option<&RunFiles>) -> Event {
        let bytes = self.bytes.len() as u64;
        let media_type = self.media_type.clone();
        let name = self.name.clone();
        self.into_event(files).await.unwrap_or_else(|error| {
            tracing::warn!(%error, "a file of a run cannot be stored");
            let problem = match &error {
                UploadError::Store(_) => "the file cannot be stored now".to_owned(),
                error => error.to_string(),
            };
            let mut content = content(&media_type, name.as_deref(), bytes, None);
            content.insert("problem".to_owned(), problem.into());
            event(content)
        })
    }

    fn into_content(self) -> JsonObject {
        let media_type = shown_type(&self.bytes, &self.media_type).unwrap_or(&self.media_type);
        let bytes = self.bytes.len();
        let mut content =
            content(media_type, self.name.as_deref(), bytes as u64, image_size(&self.bytes));
        if bytes <= MAX_EVENT_FILE_BYTES {
            content.insert(FILE_URL.to_owned(), data_url(media_type, &self.bytes).into());
        } else {
            tracing::warn!(
                bytes,
                "the client gets a file without its bytes, which are too many for an event: a store that keeps files gives them URLs"
            );
            content.insert(
                "problem".to_owned(),
                "the file is too large for an event, and this server stores no files".into(),
            );
        }
        content
    }
}

impl RunFiles {
    /// Stores a file. Returns the content of its activity.
    async fn put(&self, file: SharedFile) -> Result<JsonObject, UploadError> {
        let SharedFile { bytes, media_type, name } = file;
        let upload =
            Upload { owner: &self.owner, bytes, media_type: &media_type, name: name.as_deref() };
        let stored = self.files.put(upload).await?.file;
        // The same bytes may have been uploaded with another name.
        let name = name.or(stored.name);
        let mut content = content(&stored.media_type, name.as_deref(), stored.bytes, stored.size);
        content.insert(FILE_ID.to_owned(), stored.id.into());
        content.insert(FILE_PROVIDER.to_owned(), PartSource::OWN_PROVIDER.into());
        Ok(content)
    }

    /// Replaces data in the content of an activity by a file. Returns whether there was data.
    pub(super) async fn absorb(&self, content: &mut JsonObject) -> bool {
        let text =
            |name: &str| content.get(name).and_then(|value| value.as_str()).map(str::to_owned);
        let (Some(value), mime_type, name) = (text(FILE_URL), text(FILE_TYPE), text(FILE_NAME))
        else {
            return false;
        };
        let Some((bytes, media_type)) = decoded(&PartSource::Url { value, mime_type }) else {
            return false;
        };
        match self.put(SharedFile { bytes: bytes.into(), media_type, name }).await {
            Ok(stored) => {
                content.remove(FILE_URL);
                content.extend(stored);
                true
            }
            Err(error) => {
                tracing::warn!(%error, "the data of an activity does not become a file, and stays in the message");
                false
            }
        }
    }
}

pub(super) fn data_url(media_type: &str, bytes: &[u8]) -> String {
    format!("data:{media_type};base64,{}", STANDARD.encode(bytes))
}

fn event(content: JsonObject) -> Event {
    ActivitySnapshot::new(MessageId::random(), FILE, content).into()
}

fn content(
    media_type: &str,
    name: Option<&str>,
    bytes: u64,
    size: Option<ImageSize>,
) -> JsonObject {
    let mut content = JsonObject::from_iter([
        (FILE_TYPE.to_owned(), media_type.into()),
        ("bytes".to_owned(), bytes.into()),
    ]);
    content.extend(name.map(|name| (FILE_NAME.to_owned(), name.into())));
    if let Some(size) = size {
        content.insert("width".to_owned(), size.width.into());
        content.insert("height".to_owned(), size.height.into());
    }
    content
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[tokio::test]
    async fn without_stored_files_the_event_has_the_bytes() {
        let content_of = async |bytes: Vec<u8>| {
            let file = SharedFile {
                bytes: bytes.into(),
                media_type: String::new(),
                name: Some("a".to_owned()),
            };
            let event: Value = serde_json::to_value(file.into_event(None).await.unwrap()).unwrap();
            event["content"].clone()
        };
        let content = content_of(b"\x89PNG\r\n\x1a\n".to_vec()).await;
        assert_eq!(content.get("id"), None);
        assert!(
            content["url"].as_str().unwrap().starts_with("data:image/png;base64,iVBOR"),
            "{content}"
        );
        let content = content_of(vec![7; 4 << 20]).await;
        assert_eq!((content.get("url"), &content["bytes"]), (None, &json!(4 << 20)));
        assert!(content["problem"].as_str().unwrap().contains("too large"));
    }
}
