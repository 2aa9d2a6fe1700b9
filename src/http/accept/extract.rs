//! Extractors of what handlers need, which refuse requests as an [`ApiError`].

use axum::{
    extract::{
        FromRequestParts,
        rejection::{PathRejection, QueryRejection},
    },
    http::request::Parts,
};

use super::middleware::Caller;
use crate::{
    auth::Principal,
    http::{error::ApiError, state::App},
    threads::Threads,
};

#[derive(FromRequestParts)]
#[from_request(via(axum::extract::Path), rejection(ApiError))]
pub(crate) struct Path<T>(pub(crate) T);

#[derive(FromRequestParts)]
#[from_request(via(axum::extract::Query), rejection(ApiError))]
pub(crate) struct Query<T>(pub(crate) T);

/// The threads of the caller. A server that stores none refuses the request.
pub(crate) struct OwnThreads {
    pub(crate) threads: Threads,
    pub(crate) owner: Option<Principal>,
}

impl OwnThreads {
    pub(crate) fn owner(&self) -> Option<&Principal> {
        self.owner.as_ref()
    }
}

impl FromRequestParts<App> for OwnThreads {
    type Rejection = ApiError;

    async fn from_request_parts(head: &mut Parts, app: &App) -> Result<Self, ApiError> {
        let threads = app.threads().cloned().ok_or(ApiError::NoStoredThreads)?;
        let owner = head.extensions.get::<Caller>().ok_or(ApiError::Internal)?.principal();
        Ok(Self { threads, owner })
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
