//! `POST /files`: the bytes as the body, or as a file of a form.

use axum::{
    Json,
    extract::{Request, State},
    http::{HeaderMap, HeaderName, StatusCode, header},
};
use bytes::Bytes;

use super::{
    disposition::{file_name, parameters},
    multipart::{FormFile, first_file},
    own_files::{FileJson, OwnFiles},
};
use crate::http::{ApiError, ApiResult, App, read_body, refuse};
use agui_agent::files::{Upload, UploadError};
use agui_base::text::essence;
use agui_run::threads::ThreadError;

/// The bytes that a form may have beside its file.
const MAX_FORM_BYTES: u64 = 64 * 1024;

/// Stores a file.
///
/// The body is the file, with its `Content-Type`, and with its name in `Content-Disposition`; or a form, of which the first file is
/// stored. The same bytes again are the same file.
#[utoipa::path(
    post,
    path = "/files",
    request_body(content(
        (Vec<u8> = "application/octet-stream"),
        (Vec<u8> = "multipart/form-data"),
    ), description = "A file of any type."),
    responses(
        (status = 201, description = "The new file.", body = FileJson),
        (status = 200, description = "You have a file with these bytes.", body = FileJson),
        refuse::Body, refuse::File, refuse::Store, refuse::Upload,
    ),
)]
pub(super) async fn upload_file(
    State(app): State<App>,
    own: OwnFiles,
    request: Request,
) -> ApiResult<(StatusCode, Json<FileJson>)> {
    let (head, body) = request.into_parts();
    if head.headers.get(header::CONTENT_ENCODING).is_some_and(|encoding| encoding != "identity") {
        return Err(ApiError::EncodedBody);
    }
    let threads = &own.threads;
    threads
        .stored_bytes
        .check::<ThreadError>(&threads.store, &threads.options.retention, &own.owner)
        .await?;
    let max_bytes = own.files.options().max_file_bytes;
    let content_type = text_of(&head.headers, &header::CONTENT_TYPE);
    let is_form = essence(&content_type) == "multipart/form-data";
    let max_body = if is_form { max_bytes.saturating_add(MAX_FORM_BYTES) } else { max_bytes };
    let max_body = usize::try_from(max_body).unwrap_or(usize::MAX);
    let body = read_body::read_at_most(&app, &head, &own.owner, body, max_body).await.map_err(
        |error| match error {
            ApiError::BodyTooLarge(_) => UploadError::TooLarge(max_bytes).into(),
            error => error,
        },
    )?;
    let file = if is_form {
        file_of_form(&body, &content_type)?
    } else {
        let name =
            file_name(&text_of(&head.headers, &header::CONTENT_DISPOSITION)).unwrap_or_default();
        FormFile { bytes: body, media_type: content_type, name }
    };
    let (files, owner) = (own.files.clone(), own.owner.clone());
    // A task, so that it continues if the client leaves: half an upload would take space until it
    // is swept.
    let put = tokio::spawn(async move {
        let FormFile { bytes, media_type, name } = file;
        files.put(Upload { owner: &owner, bytes, media_type: &media_type, name: Some(&name) }).await
    });
    let uploaded = put.await.map_err(|_| ApiError::Internal)??;
    let status = if uploaded.is_new { StatusCode::CREATED } else { StatusCode::OK };
    Ok((status, Json(FileJson::new(uploaded.file, &own.urls))))
}

/// Returns the first file of a form.
pub(crate) fn file_of_form(body: &Bytes, content_type: &str) -> ApiResult<FormFile> {
    let boundary = parameters(content_type)
        .into_iter()
        .find(|(name, _)| name == "boundary")
        .map(|(_, value)| value);
    let file = boundary
        .filter(|boundary| !boundary.is_empty())
        .and_then(|boundary| first_file(body, &boundary));
    file.ok_or_else(|| {
        ApiError::invalid_input("", "a form with a file, or the bytes of a file as the body")
    })
}

/// Names can have other characters than ASCII.
fn text_of(headers: &HeaderMap, name: &HeaderName) -> String {
    headers
        .get(name)
        .map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
        .unwrap_or_default()
}
