//! Extractors of path and query parameters that refuse invalid requests as an [`ApiError`].

use axum::extract::{
    FromRequestParts,
    rejection::{PathRejection, QueryRejection},
};

use crate::http::error::ApiError;

#[derive(FromRequestParts)]
#[from_request(via(axum::extract::Path), rejection(ApiError))]
pub(crate) struct Path<T>(pub(crate) T);

#[derive(FromRequestParts)]
#[from_request(via(axum::extract::Query), rejection(ApiError))]
pub(crate) struct Query<T>(pub(crate) T);

impl From<PathRejection> for ApiError {
    fn from(rejection: PathRejection) -> Self {
        // The handler's type does not fit its route.
        if rejection.status().is_server_error() {
            return Self::internal();
        }
        Self::invalid_url(&rejection.body_text())
    }
}

impl From<QueryRejection> for ApiError {
    fn from(rejection: QueryRejection) -> Self {
        Self::invalid_url(&rejection.body_text())
    }
}
