//! The document as it is sent.

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use bytes::Bytes;
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use utoipa::openapi::OpenApi;

use super::plain::make_plain;

/// The document as JSON. It is made for the first request: most servers never send it.
pub(crate) struct ServedDocument {
    pub(super) json: Bytes,
    pub(super) etag: String,
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
        let etag = format!("\"{}\"", BASE64_URL_SAFE_NO_PAD.encode(Sha256::digest(&json)));
        Self { json: json.into(), etag }
    }
}
