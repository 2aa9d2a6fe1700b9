//! The document as it is sent.

use std::sync::LazyLock;

use axum::http::HeaderValue;
use bytes::Bytes;
use serde_json::Value;
use utoipa::openapi::OpenApi;

use super::plain::make_plain;
use crate::http::etag::etag_of;

/// A document that is made for its first request: most servers never send it. Until then it keeps
/// the declarations of the routes.
pub(crate) type LazyDocument = LazyLock<ServedDocument, Box<dyn FnOnce() -> ServedDocument + Send>>;

/// The document as JSON.
pub(crate) struct ServedDocument {
    pub(super) json: Bytes,
    pub(super) etag: HeaderValue,
}

impl ServedDocument {
    pub(crate) fn new(document: OpenApi) -> Self {
        let mut document = serde_json::to_value(document).unwrap_or_else(|error| {
            tracing::error!(%error, "cannot write the OpenAPI document");
            Value::Null
        });
        if let Some(Value::Object(schemas)) = document.pointer_mut("/components/schemas") {
            make_plain(schemas);
        }
        let json = document.to_string();
        Self { etag: etag_of(json.as_bytes()), json: json.into() }
    }
}
