//! Media of messages become files before the messages are compared with stored ones, or stored.

use std::collections::HashMap;

use super::{Files, RunFiles, Upload, UrlSigner, inline_data::decoded, signed_url::file_of};
use agui_base::text::essence;
use agui_protocol::{
    JsonObject, MediaPart, Message, PartSource,
    file_activity::{FILE_ID, FILE_PROVIDER, FILE_URL},
};
use agui_store::StoreError;

/// Data of more bytes becomes a file.
const MAX_INLINE_BYTES: usize = 1024;
/// The longest base64 of [`MAX_INLINE_BYTES`], without white space.
const MAX_INLINE_CHARS: usize = MAX_INLINE_BYTES.div_ceil(3) * 4;

/// The reason why messages cannot be stored.
#[derive(Debug, thiserror::Error)]
pub enum AbsorbError {
    /// A part names a file that the owner does not have.
    #[error("there is no such file")]
    UnknownFile {
        /// The position of the message, and of the part in its content.
        message: usize,
        part: usize,
    },
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Returns whether a message has a part that is not a text, or is a file as clients get it.
pub fn has_media(message: &Message) -> bool {
    match message {
        Message::Activity(activity) => {
            activity.file().is_some_and(|content| content.contains_key(FILE_URL))
        }
        message => message.parts().iter().any(|part| part.source().is_some()),
    }
}

impl Files {
    /// Replaces media of an owner's messages by files: data of more than [`MAX_INLINE_BYTES`], and
    /// URLs of the owner's files, expired or not. Media that cannot be stored stay unchanged.
    /// Returns whether data was replaced.
    ///
    /// # Errors
    /// [`AbsorbError::UnknownFile`], after all other media were replaced.
    pub async fn absorb<'m, M>(&self, owner: &str, messages: M) -> Result<bool, AbsorbError>
    where
        M: IntoIterator<Item = &'m mut Message, IntoIter: Send>,
    {
        let mut known = HashMap::new();
        let mut unknown = None;
        let mut has_stored = false;
        let signer = self.signer().await?;
        for (message, at) in messages.into_iter().zip(0..) {
            if let Some(content) = message.file_activity_mut() {
                has_stored |= self.absorb_activity(owner, &signer, content).await;
                continue;
            }
            for (part, part_at) in message.parts_mut().iter_mut().zip(0..) {
                let Some(media) = part.media_mut() else { continue };
                // The signature shows the file's owner, even if the file was deleted.
                if let PartSource::Url { value, mime_type: Some(mime_type) } = &media.source
                    && let Some(id) = signer.file_of(owner, value)
                {
                    media.source = PartSource::from_stored_file(id, mime_type);
                    continue;
                }
                let is_named = media.source.stored_file().is_some();
                if let Some(id) = file_of(&media.source) {
                    match self.known_file(owner, id, &mut known).await? {
                        Some(file) => {
                            media.source = canonical(id, &file.media_type, media.source.mime_type())
                        }
                        None if is_named => _ = unknown.get_or_insert((at, part_at)),
                        None => {}
                    }
                } else {
                    has_stored |= self.absorb_data(owner, media).await;
                }
            }
        }
        match unknown {
            Some((message, part)) => Err(AbsorbError::UnknownFile { message, part }),
            None => Ok(has_stored),
        }
    }

    /// Returns whether the activity's data was replaced by a file.
    async fn absorb_activity(
        &self,
        owner: &str,
        signer: &UrlSigner,
        content: &mut JsonObject,
    ) -> bool {
        let url = content.get(FILE_URL).and_then(|url| url.as_str()).unwrap_or_default();
        let Some(id) = signer.file_of(owner, url).map(str::to_owned) else {
            let owner = RunFiles { files: self.clone(), owner: owner.into() };
            return owner.absorb(content).await;
        };
        content.remove(FILE_URL);
        content.insert(FILE_ID.to_owned(), id.into());
        content.insert(FILE_PROVIDER.to_owned(), PartSource::OWN_PROVIDER.into());
        false
    }

    /// Returns whether the data was replaced by a file.
    async fn absorb_data(&self, owner: &str, media: &mut MediaPart) -> bool {
        let is_small = |text: &str| text.len() <= MAX_INLINE_CHARS;
        if matches!(&media.source, PartSource::Data { value, .. } | PartSource::Url { value, .. } if is_small(value))
        {
            return false;
        }
        let Some((bytes, media_type)) =
            decoded(&media.source).filter(|(bytes, _)| bytes.len() > MAX_INLINE_BYTES)
        else {
            return false;
        };
        let upload =
            Upload { owner, bytes: bytes.into(), media_type: &media_type, name: media.file_name() };
        match self.put(upload).await {
            Ok(stored) => {
                media.source =
                    canonical(&stored.file.id, &stored.file.media_type, Some(&media_type));
                true
            }
            Err(error) => {
                tracing::warn!(%error, "the data of a message does not become a file, and stays in the message");
                false
            }
        }
    }
}

/// Returns the source of a stored file. The declared type stays if it has the charset of a text.
fn canonical(id: &str, media_type: &str, declared: Option<&str>) -> PartSource {
    let says_more = |declared: &&str| declared.contains(';') && essence(declared) == media_type;
    PartSource::from_stored_file(id, declared.filter(says_more).unwrap_or(media_type))
}
