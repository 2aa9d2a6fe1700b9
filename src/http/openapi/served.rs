//! The document as it is sent.

use axum::http::HeaderValue;
use bytes::Bytes;
use serde_json::Value;
use utoipa::openapi::OpenApi;

use super::plain::make_plain;
use crate::http::etag::etag_of;

/// The document as JSON. It is made for the first request: most servers never send it.
pub(crate) struct ServedDocument {
    pub(super) json: Bytes,
    pub(super) etag: HeaderValue,
}

impl ServedDocument {
    pub(super) fn new(document: &OpenApi) -> Self {
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
