//! `GET` and `HEAD /files/{file}`: the bytes of a file, whole or a range, for its owner or by a signed URL.

use std::ops::Range;

use axum::{
    body::Body,
    extract::{FromRequestParts as _, Request, State},
    http::{HeaderName, HeaderValue, Method, StatusCode, header, request::Parts},
    response::IntoResponse as _,
};
use serde::Deserialize;
use utoipa::IntoParams;

use super::{
    disposition::content_disposition,
    own_files::{OwnFiles, files_of},
};
use crate::http::{
    ApiError, ApiResult, App, Path, Query, accept::middleware::refuse_foreign, etag::has_copy,
    refuse,
};
use agui_agent::files::Files;
use agui_base::text::is_in;
use agui_store::{files::StoredFile, host::now};

const PDF: &str = "application/pdf";

/// Nothing in a file runs or loads anything, also if it is opened as a page.
const SANDBOX: HeaderValue =
    HeaderValue::from_static("default-src 'none'; style-src 'unsafe-inline'; sandbox");
/// Browsers show no PDF in a sandbox.
const PDF_POLICY: HeaderValue =
    HeaderValue::from_static("default-src 'none'; object-src 'self'; style-src 'unsafe-inline'");
/// For one browser only. The bytes of a file never change, but it can be deleted.
const CACHED: HeaderValue = HeaderValue::from_static("private, max-age=3600");

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct SignatureQuery {
    /// The time at which the signed URL expires, in seconds since 1970.
    expires: Option<i64>,
    /// The signature of the URL, in place of a credential.
    signature: Option<String>,
}

/// Returns the bytes of a file.
///
/// `Range` selects a part. Other types than raster images, sound, video and PDF are sent as attachments.
#[utoipa::path(
    get,
    path = "/files/{file}",
    params(SignatureQuery),
    responses(
        (status = 200, description = "The bytes.", body = Vec<u8>, content_type = "application/octet-stream"),
        (status = 206, description = "A part of the bytes.", body = Vec<u8>, content_type = "application/octet-stream"),
        (status = 304, description = "The client has the file."),
        refuse::File, refuse::FileRange, refuse::Store,
    ),
)]
pub(super) async fn read_file(
    State(app): State<App>,
    id: ApiResult<Path<String>>,
    query: ApiResult<Query<SignatureQuery>>,
    request: Request,
) -> ApiResult {
    let file = match (files_of(&app), &id, &query) {
        (Ok(files), Ok(Path(id)), Ok(Query(query))) => signed(&files, id, query).await?,
        _ => None,
    };
    if file.is_none() {
        // The middleware let it pass, because it may have a signature.
        refuse_foreign(&app, &request)?;
    }
    let (files, Path(id), Query(query)) = (files_of(&app)?, id?, query?);
    let (mut head, _) = request.into_parts();
    let file = match file {
        Some(file) => file,
        None => match OwnFiles::from_request_parts(&mut head, &app).await {
            Ok(own) => files.file(Some(&own.owner), &id).await?.ok_or(ApiError::UnknownFile)?,
            Err(ApiError::Auth(_)) if query.signature.is_some() => {
                return Err(ApiError::InvalidSignature);
            }
            Err(error) => return Err(error),
        },
    };
    let etag =
        HeaderValue::try_from(format!("\"{}\"", file.digest)).map_err(|_| ApiError::Internal)?;
    let content = if has_copy(&head.headers, &file.digest) {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        match requested_range(&head, &etag, file.bytes) {
            Requested::Whole => content(files, &file, 0..file.bytes, &head.method).await?,
            Requested::Part(range) => {
                let content_range =
                    format!("bytes {}-{}/{}", range.start, range.end - 1, file.bytes);
                let content = content(files, &file, range, &head.method).await?;
                (StatusCode::PARTIAL_CONTENT, [(header::CONTENT_RANGE, content_range)], content)
                    .into_response()
            }
            Requested::Unsatisfiable => {
                let headers = [(header::CONTENT_RANGE, format!("bytes */{}", file.bytes))];
                return Ok((headers, ApiError::UnsatisfiableRange(file.bytes)).into_response());
            }
        }
    };
    Ok((headers(&file, etag), content).into_response())
}

/// Returns the file that a signed URL opens.
async fn signed(files: &Files, id: &str, query: &SignatureQuery) -> ApiResult<Option<StoredFile>> {
    let Some((expires, signature)) = query.expires.zip(query.signature.as_ref()) else {
        return Ok(None);
    };
    let signer = files.signer().await?;
    let file = files.file(None, id).await?;
    Ok(file.filter(|file| signer.is_valid(&file.owner, id, expires, signature, now())))
}

fn headers(file: &StoredFile, etag: HeaderValue) -> [(HeaderName, HeaderValue); 7] {
    let media_type = HeaderValue::try_from(&file.media_type);
    let kind = if is_shown(&file.media_type) { "inline" } else { "attachment" };
    [
        (
            header::CONTENT_TYPE,
            media_type.unwrap_or_else(|_| HeaderValue::from_static("application/octet-stream")),
        ),
        (
            header::CONTENT_DISPOSITION,
            content_disposition(kind, file.name.as_deref().unwrap_or(&file.id)),
        ),
        (
            header::CONTENT_SECURITY_POLICY,
            if file.media_type == PDF { PDF_POLICY } else { SANDBOX },
        ),
        (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
        (header::ACCEPT_RANGES, HeaderValue::from_static("bytes")),
        (header::CACHE_CONTROL, CACHED),
        (header::ETAG, etag),
    ]
}

/// Returns whether a browser may show a file as a page. HTML and SVG can have scripts.
fn is_shown(media_type: &str) -> bool {
    const IMAGES: &str = "image/png image/jpeg image/gif image/webp image/avif image/bmp";
    is_in(IMAGES, media_type)
        || media_type == PDF
        || media_type.starts_with("audio/")
        || media_type.starts_with("video/")
}

#[derive(Debug, PartialEq, Eq)]
enum Requested {
    Whole,
    Part(Range<u64>),
    Unsatisfiable,
}

/// Several ranges, and those that are invalid, are ignored, as RFC 9110 allows.
fn requested_range(head: &Parts, etag: &HeaderValue, length: u64) -> Requested {
    let is_of_this = head.headers.get(header::IF_RANGE).is_none_or(|condition| condition == etag);
    let range = head
        .headers
        .get(header::RANGE)
        .and_then(|range| range.to_str().ok()?.strip_prefix("bytes="));
    let Some((first, last)) = range
        .filter(|_| is_of_this && head.method == Method::GET)
        .and_then(|range| range.split_once('-'))
    else {
        return Requested::Whole;
    };
    let range = match (first.trim().parse::<u64>(), last.trim().parse::<u64>()) {
        (Ok(first), Ok(last)) if first <= last => first..length.min(last.saturating_add(1)),
        (Ok(first), Err(_)) if last.trim().is_empty() => first..length,
        (Err(_), Ok(count)) if first.trim().is_empty() => length.saturating_sub(count)..length,
        _ => return Requested::Whole,
    };
    if range.is_empty() { Requested::Unsatisfiable } else { Requested::Part(range) }
}

/// The stream is opened before the response begins, so that an error of the store has a status.
async fn content(files: Files, file: &StoredFile, range: Range<u64>, method: &Method) -> ApiResult {
    let length = [(header::CONTENT_LENGTH, range.end - range.start)];
    if *method == Method::HEAD {
        return Ok((length, Body::empty()).into_response());
    }
    let pieces = files.stream(file, range).await?.ok_or(ApiError::UnknownFile)?;
    Ok((length, Body::from_stream(pieces)).into_response())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_selects_a_part() {
        let requested = |range: &str, condition: Option<&str>| {
            let mut request = Request::builder().header(header::RANGE, range);
            if let Some(condition) = condition {
                request = request.header(header::IF_RANGE, condition);
            }
            let (head, _) = request.body(()).unwrap().into_parts();
            requested_range(&head, &HeaderValue::from_static("\"a\""), 10)
        };
        for (range, expected) in [
            ("bytes=0-3", Requested::Part(0..4)),
            ("bytes=2-", Requested::Part(2..10)),
            ("bytes=-3", Requested::Part(7..10)),
            ("bytes=-99", Requested::Part(0..10)),
            ("bytes=9-18446744073709551615", Requested::Part(9..10)),
            ("bytes=10-", Requested::Unsatisfiable),
            ("bytes=-0", Requested::Unsatisfiable),
            ("bytes=3-2", Requested::Whole),
            ("bytes=0-1,3-4", Requested::Whole),
            ("bytes=-", Requested::Whole),
            ("bytes=a-b", Requested::Whole),
            ("lines=0-3", Requested::Whole),
        ] {
            assert_eq!(requested(range, None), expected, "{range}");
        }
        assert_eq!(requested("bytes=0-3", Some("\"a\"")), Requested::Part(0..4));
        assert_eq!(requested("bytes=0-3", Some("\"b\"")), Requested::Whole);
    }

    #[test]
    fn nothing_with_scripts_is_shown_as_a_page() {
        assert!(
            ["image/png", "audio/mpeg", "video/mp4", "application/pdf"].into_iter().all(is_shown)
        );
        assert!(
            !["text/html", "image/svg+xml", "text/xml", "", "image/", "application/xhtml+xml"]
                .into_iter()
                .any(is_shown)
        );
    }
}
