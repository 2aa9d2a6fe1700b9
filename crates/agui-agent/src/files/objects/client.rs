//! The client of an object store: S3 and compatible stores, Google Cloud Storage, Azure Blob
//! Storage, a folder.

use std::{ops::Range, path::PathBuf, sync::Arc, time::Duration};

use async_trait::async_trait;
use bytes::Bytes;
use futures::{StreamExt as _, TryStreamExt as _};
use object_store::{
    Error, GetOptions, GetRange, ObjectStore, ObjectStoreExt as _, ObjectStoreScheme, RetryConfig,
    WriteMultipart, aws::AmazonS3Builder, azure::MicrosoftAzureBuilder,
    gcp::GoogleCloudStorageBuilder, local::LocalFileSystem, path::Path,
};
use reqwest::Url;

use super::connector::UpstreamConnector;
use agui_base::private_file::create_private_folder;
use agui_store::{
    StoreError,
    files::{FileObjects, FileStream},
    host::StoreResult,
};

/// Larger files are sent in parts, so that a part that fails is sent again and not the whole file.
const PART_BYTES: usize = 8 << 20;
const PARTS_AT_ONCE: usize = 3;
const RETRIES: usize = 3;
const RETRY_TIMEOUT: Duration = Duration::from_secs(15);

/// The objects below a URL.
#[derive(Debug)]
pub(super) struct ObjectClient {
    /// The URL without credentials, for errors.
    url: String,
    store: Arc<dyn ObjectStore>,
    prefix: Path,
    /// The folder of a store in the file system. It is created for this user only.
    folder: Option<PathBuf>,
}

impl ObjectClient {
    pub(super) fn open(url: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "{url:?} is not a URL such as \"s3://bucket/path\", \"gs://…\", \"az://…\" or \"file:///folder\""
            )
        };
        let parsed = Url::parse(url).map_err(|_| wrong())?;
        let (scheme, prefix) = ObjectStoreScheme::parse(&parsed).map_err(|_| wrong())?;
        let retry = RetryConfig {
            max_retries: RETRIES,
            retry_timeout: RETRY_TIMEOUT,
            ..RetryConfig::default()
        };
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
        let store =
            store.map_err(|error| format!("the object store {url} cannot be used: {error}"))?;
        let name = format!(
            "{}://{}{}",
            parsed.scheme(),
            parsed.host_str().unwrap_or_default(),
            parsed.path()
        );
        Ok(Self { url: name, store, prefix, folder })
    }

    fn path(&self, key: &str) -> Path {
        self.prefix.clone().join(key)
    }

    /// Fails unless the store confirms by a list that an object is missing.
    async fn require_absent(&self, path: &Path) -> object_store::Result<()> {
        let present =
            |problem: &str| Error::Generic { store: "the object store", source: problem.into() };
        if let Some(folder) = &self.folder {
            return if folder.is_dir() { Ok(()) } else { Err(present("its folder is gone")) };
        }
        // The last character is ASCII: keys are made of hex digits.
        let before = Path::from(path.as_ref().get(..path.as_ref().len() - 1).unwrap_or_default());
        let mut objects = self.store.list_with_offset(Some(&self.prefix), &before);
        while let Some(object) = objects.try_next().await? {
            if object.location == *path {
                return Err(present("the object is there, although it was not found"));
            }
            if object.location > *path {
                break;
            }
        }
        Ok(())
    }

    async fn write_parts(&self, path: &Path, bytes: &Bytes) -> object_store::Result<()> {
        let upload = self.store.put_multipart(path).await?;
        let mut upload = WriteMultipart::new_with_chunk_size(upload, PART_BYTES);
        for start in (0..bytes.len()).step_by(PART_BYTES) {
            if let Err(error) = upload.wait_for_capacity(PARTS_AT_ONCE - 1).await {
                let aborted = upload.abort().await;
                aborted.unwrap_or_else(
                    |error| tracing::debug!(%error, "parts of a file stay at the object store"),
                );
                return Err(error);
            }
            upload.put(bytes.slice(start..bytes.len().min(start + PART_BYTES)));
        }
        upload.finish().await.map(drop)
    }
}

fn shared<S: ObjectStore>(
    store: object_store::Result<S>,
) -> object_store::Result<Arc<dyn ObjectStore>> {
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
                Ok(Some(
                    object.into_stream().map_err(move |error| unavailable(&url, &error)).boxed(),
                ))
            }
            Err(Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(unavailable(&self.url, &error)),
        }
    }

    async fn delete(&self, key: &str) -> StoreResult<()> {
        let path = self.path(key);
        let deleted = match self.store.delete(&path).await {
            // The error can be about the whole request: the bucket does not exist, or a proxy
            // answered.
            Err(Error::NotFound { .. }) => self.require_absent(&path).await,
            deleted => deleted,
        };
        deleted.map_err(|error| unavailable(&self.url, &error))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use axum::{
        Router,
        http::{Method, StatusCode},
    };

    use super::*;

    /// An S3 server that answers deletions with 404, and lists with this.
    async fn client(list: (StatusCode, String)) -> (ObjectClient, Arc<Mutex<Vec<Method>>>) {
        let methods = Arc::new(Mutex::new(Vec::new()));
        let seen = methods.clone();
        let answer = move |method: Method| {
            seen.lock().unwrap().push(method.clone());
            let page = (StatusCode::NOT_FOUND, "<html>no such page</html>".to_owned());
            std::future::ready(if method == Method::GET { list.clone() } else { page })
        };
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, Router::new().fallback(answer)).await });
        let builder = AmazonS3Builder::new()
            .with_endpoint(&endpoint)
            .with_allow_http(true)
            .with_bucket_name("bucket");
        let builder =
            builder.with_region("here").with_access_key_id("id").with_secret_access_key("secret");
        let store = Arc::new(builder.with_http_connector(UpstreamConnector).build().unwrap());
        (ObjectClient { url: endpoint, store, prefix: Path::from("files"), folder: None }, methods)
    }

    fn list_of(key: &str) -> String {
        let modified = "<LastModified>2026-01-01T00:00:00.000Z</LastModified>";
        let object = format!("<Contents><Key>files/{key}</Key><Size>1</Size>{modified}</Contents>");
        format!("<ListBucketResult><IsTruncated>false</IsTruncated>{object}</ListBucketResult>")
    }

    #[tokio::test]
    async fn a_404_counts_as_deleted_only_if_a_list_lacks_the_object() {
        let cases = [
            (StatusCode::NOT_FOUND, "<Error><Code>NoSuchBucket</Code></Error>".to_owned(), false),
            (StatusCode::OK, list_of("file_1"), false),
            (StatusCode::OK, list_of("file_2"), true),
        ];
        for (status, list, is_deleted) in cases {
            let (client, methods) = client((status, list.clone())).await;
            assert_eq!(client.delete("file_1").await.is_ok(), is_deleted, "{list}");
            assert_eq!(methods.lock().unwrap()[..2], [Method::POST, Method::GET]);
        }
    }

    #[tokio::test]
    async fn an_object_below_a_folder_that_is_gone_is_not_deleted() {
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join("files");
        let client = ObjectClient::open(&format!("file://{}", folder.display())).unwrap();
        client.write("file_1", Bytes::from_static(b"a")).await.unwrap();
        client.delete("file_1").await.unwrap();
        client.delete("file_1").await.unwrap();
        std::fs::rename(&folder, parent.path().join("unmounted")).unwrap();
        assert!(client.delete("file_1").await.is_err());
    }
}
