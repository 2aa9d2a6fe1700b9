//! The route of the document. It needs the credential that other routes need: paths of agents may not be public.

use std::sync::{Arc, OnceLock};

use axum::{
    Router,
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{IntoResponse as _, Response},
    routing::get,
};
use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use bytes::Bytes;
use sha2::{Digest as _, Sha256};

use super::document::document;
use crate::http::{App, Route, RouteSet, etag::has_copy};

const PATH: &str = "/openapi.json";

/// The document as it is sent.
struct Served {
    json: Bytes,
    etag: String,
}

pub(crate) fn route_set() -> RouteSet {
    RouteSet::private(vec![Route::new("GET", PATH, "describes all routes as OpenAPI 3.1")], routes)
}

fn routes(app: &App) -> Router<App> {
    // Made for the first request: most servers never send it.
    let served = Arc::new(OnceLock::new());
    let app = app.clone();
    Router::new()
        .route(PATH, get(async move |headers: HeaderMap| respond(served.get_or_init(|| Served::new(&app)), &headers)))
}

impl Served {
    fn new(app: &App) -> Self {
        let json = serde_json::to_vec(&document(app)).unwrap_or_else(|error| {
            tracing::error!(%error, "cannot write the OpenAPI document");
            Vec::new()
        });
        let etag = format!("\"{}\"", BASE64_URL_SAFE_NO_PAD.encode(Sha256::digest(&json)));
        Self { json: json.into(), etag }
    }
}

fn respond(served: &Served, request: &HeaderMap) -> Response {
    let mut response = match has_copy(request, &served.etag) {
        true => StatusCode::NOT_MODIFIED.into_response(),
        false => served.json.clone().into_response(),
    };
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    // The client's own cache asks with the `ETag` whether its copy is current.
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
    if let Ok(etag) = HeaderValue::try_from(&served.etag) {
        headers.insert(header::ETAG, etag);
    }
    response
}
