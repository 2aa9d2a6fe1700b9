//! The route of the document. It needs the credential that other routes need: paths of agents may not be public.

use axum::{
    extract::State,
    http::{HeaderMap, HeaderValue, header},
    response::{IntoResponse as _, Response},
};

use crate::http::{App, etag::unless_current};

/// Returns this document.
#[utoipa::path(
    get,
    path = "/openapi.json",
    params(("If-None-Match" = Option<String>, Header, description = "The `ETag` of the client's copy.")),
    responses(
        (status = 200, description = "The document.", body = Object, content_type = "application/json", headers(("ETag" = String, description = "Names this version of the document."))),
        (status = 304, description = "The client's copy is current."),
    ),
)]
pub(crate) async fn read_open_api(State(app): State<App>, headers: HeaderMap) -> Response {
    let document = &app.document;
    let mut response =
        unless_current(&headers, &document.etag, || document.json.clone().into_response());
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    // The client's own cache asks with the `ETag` whether its copy is current.
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
    response
}
