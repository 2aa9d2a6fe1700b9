//! A caller's files: store, list, read, delete.
//!
//! Another principal's file does not exist for the caller: 404 `unknown_file`. The signed URL of a file opens it without a credential,
//! and nothing else. So the handlers check their callers: the middleware would refuse bodies that are not JSON, and signed URLs.

mod disposition;
mod download;
mod manage;
mod multipart;
mod upload;

use std::sync::Arc;

use axum::{extract::FromRequestParts, http::request::Parts};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    ApiError, ApiResult, App,
    accept::middleware,
    threads::pages::{TimeText, time},
};
use crate::{
    auth::owner_of,
    files::{Files, UrlSigner},
    protocol::{ContentPart, PartSource},
    run::ThreadRuns,
    store::{files::StoredFile, now},
};

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(manage::list_files, upload::upload_file))
        .routes(routes!(download::read_file, manage::delete_file))
}

/// The files of an authenticated caller.
struct OwnFiles {
    files: Files,
    threads: Arc<ThreadRuns>,
    owner: Arc<str>,
    urls: FileUrls,
}

impl FromRequestParts<App> for OwnFiles {
    type Rejection = ApiError;

    async fn from_request_parts(head: &mut Parts, app: &App) -> Result<Self, ApiError> {
        let caller = middleware::authenticate_caller(app, head).await?;
        let (threads, files) = files_of(app)?;
        let urls = FileUrls { signer: files.signer().await? };
        Ok(Self { files, threads, owner: owner_of(caller.principal().as_ref()), urls })
    }
}

/// Returns the files of the server, with its threads.
fn files_of(app: &App) -> ApiResult<(Arc<ThreadRuns>, Files)> {
    let threads = app.runs().thread_runs().ok_or(ApiError::NoStoredThreads)?;
    let files = threads.files.clone().ok_or(ApiError::NoFiles)?;
    Ok((threads.clone(), files))
}

struct FileUrls {
    signer: UrlSigner,
}

impl FileUrls {
    fn url(&self, owner: &str, id: &str) -> String {
        self.signer.path(owner, id, now())
    }
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = File)]
struct FileJson {
    id: String,
    /// As its bytes show.
    mime_type: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    bytes: u64,
    /// Of an image, in pixels.
    #[serde(skip_serializing_if = "Option::is_none")]
    width: Option<u32>,
    /// Of an image, in pixels.
    #[serde(skip_serializing_if = "Option::is_none")]
    height: Option<u32>,
    created_at: TimeText,
    /// Opens the file without a credential until a time.
    url: String,
    /// The part to put into the content of a message.
    part: ContentPart,
}

impl FileJson {
    fn new(file: StoredFile, urls: &FileUrls) -> Self {
        let url = urls.url(&file.owner, &file.id);
        let source = PartSource::Url { value: url.clone(), mime_type: Some(file.media_type.clone()) };
        let metadata = file.name.as_ref().map(|name| serde_json::json!({ "filename": name }));
        Self {
            part: ContentPart::media(&file.media_type, source, metadata),
            id: file.id,
            mime_type: file.media_type,
            name: file.name,
            bytes: file.bytes,
            width: file.size.map(|size| size.width),
            height: file.size.map(|size| size.height),
            created_at: time(file.created_at),
            url,
        }
    }
}
