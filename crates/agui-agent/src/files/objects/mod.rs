//! The bytes of files at an object store: `[files] url`.
//!
//! Credentials, region and endpoint come from the environment, by the names of the crate `object_store`: `AWS_…`, `GOOGLE_…`,
//! `AZURE_…`.

#[cfg(feature = "object-store")]
mod client;
#[cfg(feature = "object-store")]
mod connector;

use std::{ops::Range, sync::Arc};

use async_trait::async_trait;
use bytes::Bytes;

use agui_store::{
    StoreError,
    files::{FileObjects, FileStream},
    host::StoreResult,
};

/// Returns the object store of a URL. An unusable store fails at each use.
pub(super) fn open(url: &str) -> Arc<dyn FileObjects> {
    opened(url).unwrap_or_else(|problem| {
        tracing::error!("[files] url: {problem}");
        Arc::new(UnusableObjects(problem))
    })
}

/// Checks a URL, and the options that its object store needs. Calls no server.
///
/// # Errors
/// The fault of the URL or of an option.
pub fn check_url(url: &str) -> Result<(), String> {
    opened(url).map(drop)
}

#[cfg(feature = "object-store")]
fn opened(url: &str) -> Result<Arc<dyn FileObjects>, String> {
    Ok(Arc::new(client::ObjectClient::open(url)?))
}

#[cfg(not(feature = "object-store"))]
fn opened(_url: &str) -> Result<Arc<dyn FileObjects>, String> {
    Err("this program was built without object stores: build it with the feature \"object-store\""
        .to_owned())
}

#[derive(Debug)]
struct UnusableObjects(String);

impl UnusableObjects {
    fn error(&self) -> StoreError {
        StoreError::Failed(self.0.clone().into())
    }
}

#[async_trait]
impl FileObjects for UnusableObjects {
    async fn write(&self, _key: &str, _bytes: Bytes) -> StoreResult<()> {
        Err(self.error())
    }

    async fn read(&self, _key: &str, _range: Range<u64>) -> StoreResult<Option<FileStream>> {
        Err(self.error())
    }

    async fn delete(&self, _key: &str) -> StoreResult<()> {
        Err(self.error())
    }
}
