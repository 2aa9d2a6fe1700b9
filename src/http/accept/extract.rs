//! Extractors of what handlers need, which refuse requests as an [`ApiError`].

use axum::{
    extract::{
        FromRequestParts,
        rejection::{PathRejection, QueryRejection},
    },
    http::request::Parts,
};

use super::middleware::Caller;
use crate::http::{client_encoder::ClientFiles, error::ApiError, state::App};
use agui_agent::files::FileUrls;
use agui_protocol::Message;
use agui_run::threads::Threads;

#[derive(FromRequestParts)]
#[from_request(via(axum::extract::Path), rejection(ApiError))]
pub(crate) struct Path<T>(pub(crate) T);

#[derive(FromRequestParts)]
#[from_request(via(axum::extract::Query), rejection(ApiError))]
pub(crate) struct Query<T>(pub(crate) T);

/// The threads of the caller.
pub(crate) struct OwnThreads {
    pub(crate) app: App,
    pub(crate) threads: Threads,
    pub(crate) caller: Caller,
    files: Option<ClientFiles>,
}

impl OwnThreads {
    /// Replaces the names of files in stored messages by their URLs.
    pub(crate) fn present<'m>(&self, messages: impl IntoIterator<Item = &'m mut Message>) {
        if let Some(urls) = self.urls() {
            urls.present(messages);
        }
    }

    /// Returns the URLs of files for the caller; `None` for a server that keeps no files.
    pub(crate) fn urls(&self) -> Option<FileUrls> {
        self.files.as_ref().map(ClientFiles::urls)
    }
}

impl FromRequestParts<App> for OwnThreads {
    type Rejection = ApiError;

    async fn from_request_parts(head: &mut Parts, app: &App) -> Result<Self, ApiError> {
        let caller = head.extensions.get::<Caller>().ok_or(ApiError::Internal)?.clone();
        let files = ClientFiles::for_caller(app, &caller).await;
        Ok(Self { app: app.clone(), threads: app.threads.clone(), caller, files })
    }
}

impl From<PathRejection> for ApiError {
    fn from(rejection: PathRejection) -> Self {
        // The handler's type does not fit its route.
        if rejection.status().is_server_error() {
            return Self::Internal;
        }
        Self::invalid_url(&rejection.body_text())
    }
}

impl From<QueryRejection> for ApiError {
    fn from(rejection: QueryRejection) -> Self {
        Self::invalid_url(&rejection.body_text())
    }
}
