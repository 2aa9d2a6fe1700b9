//! The files of a caller, and their JSON.

use std::sync::Arc;

use axum::{extract::FromRequestParts, http::request::Parts};
use serde::Serialize;
use utoipa::ToSchema;

use crate::http::{
    ApiError, ApiResult, App, ClientFiles,
    accept::middleware,
    threads::pages::{TimeText, time},
};
use agui_agent::files::{FileUrls, Files};
use agui_protocol::{ContentPart, MediaPart, PartSource};
use agui_run::host::ThreadCore;
use agui_store::files::StoredFile;

/// The files of an authenticated caller.
pub(super) struct OwnFiles {
    pub(super) files: Files,
    pub(super) threads: Arc<ThreadCore>,
    pub(super) owner: Arc<str>,
    pub(super) urls: FileUrls,
}

impl FromRequestParts<App> for OwnFiles {
    type Rejection = ApiError;

    async fn from_request_parts(head: &mut Parts, app: &App) -> Result<Self, ApiError> {
        let caller = middleware::authenticate_caller(app, head).await?;
        let files = files_of(app)?;
        let urls = ClientFiles::for_caller(app, &caller).await.ok_or(ApiError::NoFiles)?.urls();
        Ok(Self { files, threads: app.threads.core.clone(), owner: caller.owner(), urls })
    }
}

/// Returns the files of the server.
pub(super) fn files_of(app: &App) -> ApiResult<Files> {
    app.threads.core.files.clone().ok_or(ApiError::NoFiles)
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = File)]
pub(super) struct FileJson {
    id: String,
    /// The media type that its bytes show.
    mime_type: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    bytes: u64,
    /// The width of an image, in pixels.
    #[serde(skip_serializing_if = "Option::is_none")]
    width: Option<u32>,
    /// The height of an image, in pixels.
    #[serde(skip_serializing_if = "Option::is_none")]
    height: Option<u32>,
    created_at: TimeText,
    /// Opens the file without a credential until a time.
    url: String,
    /// The part to put into the content of a message.
    part: ContentPart,
}

impl FileJson {
    pub(super) fn new(file: StoredFile, urls: &FileUrls) -> Self {
        let url = urls.url(&file.id);
        let source =
            PartSource::Url { value: url.clone(), mime_type: Some(file.media_type.clone()) };
        let metadata = file.name.as_ref().map(|name| serde_json::json!({ "filename": name }));
        Self {
            part: ContentPart::media(&file.media_type, MediaPart { metadata, ..source.into() }),
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
