//! Reads request bodies, with limits on size and time.

use std::time::Duration;

use axum::{
    body::{Body, HttpBody as _},
    http::{HeaderMap, header},
};
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt as _;

use super::{error::ApiError, options::HttpOptions};

/// A client that is still sending gets the answer in place of a broken connection if up to this much is read and
/// discarded.
const MAX_DISCARDED_BYTES: usize = 64 * 1024 * 1024;

pub(crate) struct Limits {
    pub(super) bytes: usize,
    pub(super) timeout: Duration,
    /// The client waits for `100 Continue`, so it sends nothing that would have to be discarded.
    pub(super) client_waits: bool,
}

impl Limits {
    pub(crate) fn of(options: &HttpOptions, headers: &HeaderMap) -> Self {
        let client_waits = headers.contains_key(header::EXPECT);
        Self { bytes: options.max_body_bytes, timeout: options.body_timeout, client_waits }
    }
}

pub(crate) async fn read(body: Body, limits: Limits) -> Result<Bytes, ApiError> {
    tokio::time::timeout(limits.timeout, collect(body, &limits)).await.unwrap_or_else(|_| Err(ApiError::body_timeout()))
}

async fn collect(mut body: Body, limits: &Limits) -> Result<Bytes, ApiError> {
    let declared = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
    if declared > limits.bytes {
        return Err(too_large(body, limits).await);
    }
    // A small body is one frame, and is not copied.
    let Some(first) = next(&mut body, limits.bytes).await? else { return Ok(Bytes::new()) };
    let Some(first) = first else { return Err(too_large(body, limits).await) };
    let mut whole = BytesMut::new();
    loop {
        let read = if whole.is_empty() { first.len() } else { whole.len() };
        match next(&mut body, limits.bytes - read).await? {
            None if whole.is_empty() => return Ok(first),
            None => return Ok(whole.freeze()),
            Some(None) => return Err(too_large(body, limits).await),
            Some(Some(data)) => {
                if whole.is_empty() {
                    whole.reserve(declared.max(first.len() + data.len()));
                    whole.extend_from_slice(&first);
                }
                whole.extend_from_slice(&data);
            }
        }
    }
}

/// `None` at the end of the body, `Some(None)` if the frame is larger than `room` bytes.
async fn next(body: &mut Body, room: usize) -> Result<Option<Option<Bytes>>, ApiError> {
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| ApiError::body_incomplete())?;
        // Trailers are ignored.
        if let Ok(data) = frame.into_data()
            && !data.is_empty()
        {
            return Ok(Some((data.len() <= room).then_some(data)));
        }
    }
    Ok(None)
}

async fn too_large(mut body: Body, limits: &Limits) -> ApiError {
    let mut discarded = 0;
    while !limits.client_waits && discarded < MAX_DISCARDED_BYTES {
        match body.frame().await {
            Some(Ok(frame)) => discarded += frame.data_ref().map_or(0, Bytes::len),
            _ => break,
        }
    }
    ApiError::body_too_large(limits.bytes)
}
