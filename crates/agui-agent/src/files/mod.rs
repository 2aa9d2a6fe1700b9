//! The files of owners. Messages refer to them, and each is stored once.
//!
//! [`Files`] wraps the files of a store ([`FileStore`]): it reads the type and the size of a file
//! from its bytes, checks the limits of `[files]`, and signs URLs. [`objects`] keeps the bytes at
//! an object store. To read more kinds of files, change `media_type`.

mod absorb;
pub mod inline_data;
mod load;
mod media_type;
mod objects;
mod options;
mod present;
mod read;
mod shared;
mod signed_url;

use std::sync::Arc;

use bytes::Bytes;
use sha2::{Digest as _, Sha256};
use tokio::sync::OnceCell;

pub use absorb::{AbsorbError, has_media};
pub use load::{LoadedFor, MAX_LOADED_BYTES, name_again, names_files};
pub use media_type::jpeg_segments;
pub use media_type::{image_size, shown_type};
pub use objects::check_url;
pub use options::FileOptions;
pub use present::{FileUrls, OWN_FILE, event_names_files, event_of_line};
pub use shared::{RunFiles, SharedFile};
pub use signed_url::UrlSigner;

use agui_base::{
    refusals,
    text::{essence, hex},
};
use agui_store::{
    Store, StoreError,
    files::{
        DeletedFile, FileDeletion, FileLimit, FileLimits, FileObjects, FileStore, NewFile, PutFile,
        SecretName, StoredFile,
    },
    host::{StoreResult, now},
};

/// The longest name of a file, in characters.
const MAX_NAME_CHARS: usize = 200;
/// The files of a server.
#[derive(Clone)]
pub struct Files(Arc<FilesInner>);

struct FilesInner {
    store: Arc<dyn Store>,
    options: FileOptions,
    objects: Option<Arc<dyn FileObjects>>,
    secret: OnceCell<[u8; 32]>,
}

/// Bytes to store as a file.
#[derive(Debug, Clone)]
pub struct Upload<'a> {
    pub owner: &'a str,
    pub bytes: Bytes,
    /// The type that the sender declares. It counts if the bytes show no other type.
    pub media_type: &'a str,
    pub name: Option<&'a str>,
}

/// A file after an upload.
#[derive(Debug, Clone)]
pub struct UploadedFile {
    pub file: StoredFile,
    /// False if the owner had the same bytes before.
    pub is_new: bool,
}

refusals! {
    /// The reason why bytes do not become a file.
    #[derive(Debug, thiserror::Error)]
    pub enum UploadError {
        /// The file is larger than `[files] max_file_bytes`.
        #[error("the file has more than {0} bytes, which is [files] max_file_bytes: send a smaller one")]
        #[refusal(PAYLOAD_TOO_LARGE, "file_too_large", Upload)]
        TooLarge(u64),
        /// There are no bytes.
        #[error("the file is empty")]
        #[refusal(BAD_REQUEST, "file_empty", Upload)]
        Empty,
        /// The limit of the bytes of the owner's files.
        #[error("your files would have more bytes than [files] max_bytes_per_principal allows: delete some of them")]
        #[refusal(PAYLOAD_TOO_LARGE, "too_many_file_bytes", Upload)]
        FullOfOwner,
        /// The limit of the number of the owner's files.
        #[error("you have as many files as [files] max_files_per_principal allows: delete some of them")]
        #[refusal(PAYLOAD_TOO_LARGE, "too_many_files", Upload)]
        TooManyFiles,
        /// A limit of all files, with its option.
        #[error("all files of this server would be more than [files] {0} allows")]
        #[refusal(INSUFFICIENT_STORAGE, "file_storage_full", Upload)]
        Full(&'static str),
        /// The store failed.
        #[error("{0}")]
        #[refusal(StoreError)]
        Store(#[from] StoreError),
    }
}

impl Files {
    /// Returns the files of a store, or `None` if it keeps none.
    pub fn from_store(store: &Arc<dyn Store>, options: FileOptions) -> Option<Self> {
        store.files()?;
        let objects = options.url.as_deref().map(objects::open);
        Some(Self(Arc::new(FilesInner {
            store: store.clone(),
            options,
            objects,
            secret: OnceCell::new(),
        })))
    }

    pub fn options(&self) -> &FileOptions {
        &self.0.options
    }

    /// Stores bytes as a file, or finds the owner's file with the same bytes.
    pub async fn put(&self, upload: Upload<'_>) -> Result<UploadedFile, UploadError> {
        let options = &self.0.options;
        match upload.bytes.len() as u64 {
            0 => return Err(UploadError::Empty),
            length if length > options.max_file_bytes => {
                return Err(UploadError::TooLarge(options.max_file_bytes));
            }
            _ => {}
        }
        let digest = digest(upload.bytes.clone()).await?;
        let name: Option<String> = upload
            .name
            .map(|name| name.chars().filter(|c| !c.is_control()).take(MAX_NAME_CHARS).collect());
        let declared = Some(essence(upload.media_type)).filter(|declared| is_media_type(declared));
        let declared = declared.as_deref().unwrap_or("application/octet-stream");
        let file = NewFile {
            owner: upload.owner,
            media_type: shown_type(&upload.bytes, declared).unwrap_or(declared),
            name: name.as_deref().filter(|name| !name.is_empty()),
            digest: &digest,
            size: image_size(&upload.bytes),
            bytes: upload.bytes,
            now: now(),
            limits: FileLimits {
                owner_bytes: options.owner_bytes,
                owner_files: options.owner_files,
                bytes: options.bytes,
                files: options.files,
            },
            objects: self.0.objects.as_deref(),
        };
        match self.store()?.put(&file).await? {
            PutFile::Stored(file) => Ok(UploadedFile { file, is_new: true }),
            PutFile::Existed(file) => Ok(UploadedFile { file, is_new: false }),
            PutFile::Full(limit) => Err(match limit {
                FileLimit::OwnerBytes => UploadError::FullOfOwner,
                FileLimit::OwnerFiles => UploadError::TooManyFiles,
                FileLimit::Bytes => UploadError::Full("max_bytes_total"),
                FileLimit::Files => UploadError::Full("max_files_total"),
            }),
        }
    }

    /// Reads a file of this owner, or of any owner if `owner` is `None`, without its bytes.
    pub async fn file(&self, owner: Option<&str>, id: &str) -> StoreResult<Option<StoredFile>> {
        self.store()?.file(owner, id).await
    }

    /// Lists files of an owner with numbers below `before`, the newest first.
    pub async fn list(
        &self,
        owner: &str,
        before: Option<i64>,
        limit: usize,
    ) -> StoreResult<Vec<StoredFile>> {
        self.store()?.files(owner, before, limit).await
    }

    pub async fn delete(
        &self,
        owner: &str,
        id: &str,
        deletion: FileDeletion,
    ) -> StoreResult<DeletedFile> {
        let deleted = self.store()?.delete_file(owner, id, deletion).await?;
        if deleted == DeletedFile::Deleted {
            let left = self.delete_objects().await;
            left.unwrap_or_else(|error| {
                tracing::warn!(?error, "the bytes of a file are left to the next sweep")
            });
        }
        Ok(deleted)
    }

    /// Deletes the files that no thread has used for the configured time. Returns their number.
    pub async fn sweep(&self) -> StoreResult<u64> {
        let now = now();
        let unused_before = self.0.options.unused_age.and_then(|age| now.checked_sub_unsigned(age));
        let swept = self.store()?.sweep_files(unused_before, now).await?;
        self.delete_objects().await?;
        Ok(swept)
    }

    /// Returns the signer of the URLs of files, which also checks them.
    pub async fn signer(&self) -> StoreResult<UrlSigner> {
        let secret = self
            .0
            .secret
            .get_or_try_init(async || self.store()?.secret(SecretName::Files).await)
            .await?;
        Ok(UrlSigner { key: *secret, valid_seconds: i64::from(self.0.options.url_days) * 86_400 })
    }

    fn store(&self) -> StoreResult<&dyn FileStore> {
        self.0.store.files().ok_or_else(|| StoreError::Failed("the store keeps no files".into()))
    }
}

/// Returns the SHA-256, in hex. 20 MiB take about 15 ms.
async fn digest(bytes: Bytes) -> StoreResult<String> {
    let digest = tokio::task::spawn_blocking(move || hex(&Sha256::digest(&bytes))).await;
    digest.map_err(|error| StoreError::Failed(error.into()))
}

/// Returns whether a text is `type/subtype` in the characters that headers can have.
fn is_media_type(text: &str) -> bool {
    let is_token = |text: &str| {
        !text.is_empty()
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$&-^_.+".contains(&byte))
    };
    text.len() <= 127
        && text.split_once('/').is_some_and(|(kind, subtype)| is_token(kind) && is_token(subtype))
}

#[cfg(test)]
mod tests {
    use futures::TryStreamExt as _;

    use super::*;
    use agui_store::{MemoryStore, files::FILE_OVERHEAD};

    const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x02\0\0\0\x03\x08\x06";

    fn files(options: FileOptions) -> Files {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        Files::from_store(&store, options).unwrap()
    }

    fn upload(
        owner: &'static str,
        bytes: &'static [u8],
        media_type: &'static str,
    ) -> Upload<'static> {
        Upload { owner, bytes: Bytes::from_static(bytes), media_type, name: Some("a\n.png") }
    }

    #[tokio::test]
    async fn the_same_bytes_of_an_owner_are_one_file_with_the_type_of_its_bytes() {
        let files = files(FileOptions::default());
        let UploadedFile { file, is_new } =
            files.put(upload("key:ann", PNG, "IMAGE/jpeg; q=1")).await.unwrap();
        assert!(is_new && file.id.len() == 37);
        let size = file.size.map(|size| (size.width, size.height));
        assert_eq!(
            (&*file.media_type, file.name.as_deref(), size),
            ("image/png", Some("a.png"), Some((2, 3)))
        );
        let again = files.put(upload("key:ann", PNG, "")).await.unwrap();
        assert_eq!((again.is_new, &again.file), (false, &file));
        let other = files.put(upload("key:bob", PNG, "")).await.unwrap();
        assert!(other.is_new && other.file.id != file.id);
        assert_eq!(files.file(Some("key:ann"), &file.id).await.unwrap().as_ref(), Some(&file));
        assert_eq!(files.file(Some("key:bob"), &file.id).await.unwrap(), None);
        assert_eq!(files.file(None, &file.id).await.unwrap().as_ref(), Some(&file));
        assert_eq!(files.bytes(&file).await.unwrap().as_deref(), Some(PNG));
        let part: Vec<_> =
            files.stream(&file, 1..4).await.unwrap().unwrap().try_collect().await.unwrap();
        assert_eq!(part, ["PNG"]);
        for (declared, expected) in [
            ("text/plain", "text/plain"),
            ("", "application/octet-stream"),
            ("a", "application/octet-stream"),
        ] {
            let bytes = if declared == "a" { &b"b"[..] } else { expected.as_bytes() };
            assert_eq!(
                files.put(upload("key:ann", bytes, declared)).await.unwrap().file.media_type,
                expected
            );
        }
    }

    #[tokio::test]
    async fn unused_files_go_and_urls_end_after_the_configured_times() {
        for (unused_age, is_kept) in [(Some(0), false), (Some(3_600_000), true), (None, true)] {
            let files = files(FileOptions { unused_age, url_days: 3, ..FileOptions::default() });
            let file = files.put(upload("key:ann", PNG, "")).await.unwrap().file;
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            assert_eq!(files.sweep().await.unwrap(), u64::from(!is_kept));
            assert_eq!(files.file(None, &file.id).await.unwrap().is_some(), is_kept);
            let path = files.signer().await.unwrap().path("key:ann", &file.id, 0);
            assert!(path.contains(&format!("?expires={}&", 3 * 86_400 + 3600)), "{path}");
        }
    }

    #[tokio::test]
    async fn files_have_limits() {
        let options = FileOptions {
            max_file_bytes: 4,
            owner_bytes: Some(2 * FILE_OVERHEAD + 6),
            bytes: Some(3 * FILE_OVERHEAD + 8),
            ..FileOptions::default()
        };
        let files = files(options);
        let put = async |owner, bytes| files.put(upload(owner, bytes, "")).await;
        assert!(matches!(put("a", b"12345").await, Err(UploadError::TooLarge(4))));
        assert!(matches!(put("a", b"").await, Err(UploadError::Empty)));
        assert!(put("a", b"1234").await.is_ok());
        assert!(matches!(put("a", b"123").await, Err(UploadError::FullOfOwner)));
        assert!(put("a", b"12").await.is_ok());
        assert!(matches!(put("b", b"123").await, Err(UploadError::Full("max_bytes_total"))));
        assert!(
            put("a", b"1234").await.is_ok_and(|uploaded| !uploaded.is_new),
            "it is there already"
        );
    }
}
