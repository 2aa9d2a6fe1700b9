//! The client of an object store: S3 and what speaks its protocol, Google Cloud Storage, Azure Blob Storage, a folder.

use std::{ops::Range, path::PathBuf, sync::Arc, time::Duration};

use async_trait::async_trait;
use bytes::Bytes;
use futures::{StreamExt as _, TryStreamExt as _};
use object_store::{
    Error, GetOptions, GetRange, ObjectStore, ObjectStoreExt as _, ObjectStoreScheme, RetryConfig, WriteMultipart,
    aws::AmazonS3Builder, azure::MicrosoftAzureBuilder, gcp::GoogleCloudStorageBuilder, local::LocalFileSystem,
    path::Path,
};
use reqwest::Url;

use super::connector::UpstreamConnector;
use crate::{
    base::private_file::create_private_folder,
    store::{
        StoreError, StoreResult,
        files::{FileObjects, FileStream},
    },
};

/// Larger files are sent in parts, so that a part that fails is sent again and not the whole file.
const PART_BYTES: usize = 8 << 20;
const PARTS_AT_ONCE: usize = 3;
const RETRIES: usize = 3;
const RETRY_TIMEOUT: Duration = Duration::from_secs(15);

/// The objects below a URL.
#[derive(Debug)]
pub(super) struct ObjectClient {
    /// Without credentials, for errors.
    url: String,
    store: Arc<dyn ObjectStore>,
    prefix: Path,
    /// Of a store in a folder, which is created for this user only.
    folder: Option<PathBuf>,
}

impl ObjectClient {
    pub(super) fn open(url: &str) -> Result<Self, String> {
        let wrong = || {
            format!("{url:?} is not a URL such as \"s3://bucket/path\", \"gs://…\", \"az://…\" or \"file:///folder\"")
        };
        let parsed = Url::parse(url).map_err(|_| wrong())?;
        let (scheme, prefix) = ObjectStoreScheme::parse(&parsed).map_err(|_| wrong())?;
        let retry = RetryConfig { max_retries: RETRIES, retry_timeout: RETRY_TIMEOUT, ..RetryConfig::default() };
        let (store, folder): (object_store::Result<Arc<dyn ObjectStore>>, _) = match scheme {
            ObjectStoreScheme::AmazonS3 => {
                let builder = AmazonS3Builder::from_env().with_url(url).with_retry(retry);
                (shared(builder.with_http_connector(UpstreamConnector).build()), None)
            }
            ObjectStoreScheme::GoogleCloudStorage => {
                let builder = GoogleCloudStorageBuilder::from_env().with_url(url).with_retry(retry);
                (shared(builder.with_http_connector(UpstreamConnector).build()), None)
            }
            ObjectStoreScheme::MicrosoftAzure => {
                let builder = MicrosoftAzureBuilder::from_env().with_url(url).with_retry(retry);
                (shared(builder.with_http_connector(UpstreamConnector).build()), None)
            }
            ObjectStoreScheme::Local if url.starts_with("file:///") => {
                let folder = parsed.to_file_path().map_err(|()| wrong())?;
                (Ok(Arc::new(LocalFileSystem::new().with_fsync(true)) as _), Some(folder))
            }
            _ => return Err(wrong()),
        };
        let store = store.map_err(|error| format!("the object store {url} cannot be used: {error}"))?;
        let name = format!("{}://{}{}", parsed.scheme(), parsed.host_str().unwrap_or_default(), parsed.path());
        Ok(Self { url: name, store, prefix, folder })
    }

    fn path(&self, key: &str) -> Path {
        self.prefix.clone().join(key)
    }

    async fn write_parts(&self, path: &Path, bytes: &Bytes) -> object_store::Result<()> {
        let upload = self.store.put_multipart(path).await?;
        let mut upload = WriteMultipart::new_with_chunk_size(upload, PART_BYTES);
        for start in (0..bytes.len()).step_by(PART_BYTES) {
            if let Err(error) = upload.wait_for_capacity(PARTS_AT_ONCE - 1).await {
                let aborted = upload.abort().await;
                aborted.unwrap_or_else(|error| tracing::debug!(%error, "parts of a file stay at the object store"));
                return Err(error);
            }
            upload.put(bytes.slice(start..bytes.len().min(start + PART_BYTES)));
        }
        upload.finish().await.map(drop)
    }
}

fn shared<S: ObjectStore>(store: object_store::Result<S>) -> object_store::Result<Arc<dyn ObjectStore>> {
    store.map(|store| Arc::new(store) as _)
}

fn unavailable(url: &str, error: &Error) -> StoreError {
    StoreError::Unavailable(format!("the object store {url}: {error}").into())
}

#[async_trait]
impl FileObjects for ObjectClient {
    async fn write(&self, key: &str, bytes: Bytes) -> StoreResult<()> {
        if let Some(folder) = self.folder.clone() {
            let created = tokio::task::spawn_blocking(move || create_private_folder(&folder)).await;
            created
                .map_err(|error| StoreError::Failed(error.into()))?
                .map_err(|error| StoreError::Unavailable(error.into()))?;
        }
        let path = self.path(key);
        let written = if bytes.len() > PART_BYTES {
            self.write_parts(&path, &bytes).await
        } else {
            self.store.put(&path, bytes.into()).await.map(drop)
        };
        written.map_err(|error| unavailable(&self.url, &error))
    }

    async fn read(&self, key: &str, range: Range<u64>) -> StoreResult<Option<FileStream>> {
        let options = GetOptions { range: Some(GetRange::Bounded(range)), ..GetOptions::default() };
        match self.store.get_opts(&self.path(key), options).await {
            Ok(object) => {
                let url = self.url.clone();
                Ok(Some(object.into_stream().map_err(move |error| unavailable(&url, &error)).boxed()))
            }
            Err(Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(unavailable(&self.url, &error)),
        }
    }

    async fn delete(&self, key: &str) -> StoreResult<()> {
        match self.store.delete(&self.path(key)).await {
            Ok(()) | Err(Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(unavailable(&self.url, &error)),
        }
    }
}
