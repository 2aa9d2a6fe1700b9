//! Reads the bodies of responses, compressed or not, within a limit on the bytes after decompression.
//!
//! Requests ask for no compression; some servers compress anyway.

use std::{error::Error as StdError, io::Write as _, time::Duration};

use async_stream::try_stream;
use bytes::Bytes;
use flate2::write::GzDecoder;
use futures::{StreamExt as _, stream::BoxStream};
use reqwest::{Response, header::CONTENT_ENCODING};
use tokio::time::timeout;

pub(super) type BodyError = Box<dyn StdError + Send + Sync>;

/// The number of compressed bytes that are decompressed at a time. They become at most about a
/// thousand times as many bytes.
const STEP: usize = 256;

/// An error of [`read_whole`].
#[derive(Debug, thiserror::Error)]
pub enum BodyReadError {
    /// The body is longer than the limit, in bytes.
    #[error("its response is longer than {0} bytes")]
    TooLong(usize),
    /// The connection broke, or the compressed data are invalid. The text has no URL.
    #[error(transparent)]
    Broken(BodyError),
}

/// The beginning of a body.
pub struct BodyStart {
    pub bytes: Vec<u8>,
    /// True if the body is longer.
    pub is_cut: bool,
}

/// Returns the body of a response in pieces.
pub(super) fn pieces(response: Response) -> BoxStream<'static, Result<Bytes, BodyError>> {
    let encoding = response
        .headers()
        .get(CONTENT_ENCODING)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    let is_gzip = ["gzip", "x-gzip"].iter().any(|name| encoding.trim().eq_ignore_ascii_case(name));
    // The URL may contain a secret.
    let mut pieces = response
        .bytes_stream()
        .map(|piece| piece.map_err(|error| error.without_url().into()))
        .boxed();
    if !is_gzip {
        return pieces;
    }
    Box::pin(try_stream! {
        let mut decoder = GzDecoder::new(Vec::new());
        while let Some(piece) = pieces.next().await {
            let piece: Bytes = piece?;
            for step in piece.chunks(STEP) {
                decoder.write_all(step)?;
                decoder.flush()?;
                let decoded = std::mem::take(decoder.get_mut());
                if !decoded.is_empty() {
                    yield decoded.into();
                }
            }
        }
    })
}

/// Reads a body.
///
/// # Errors
/// If the body is longer than `limit` bytes. A length in the head is checked before the body is
/// read.
pub async fn read_whole(response: Response, limit: usize) -> Result<Vec<u8>, BodyReadError> {
    if response.content_length().is_some_and(|length| length > limit as u64) {
        return Err(BodyReadError::TooLong(limit));
    }
    match read_start(response, limit).await.map_err(BodyReadError::Broken)? {
        BodyStart { is_cut: true, .. } => Err(BodyReadError::TooLong(limit)),
        BodyStart { bytes, .. } => Ok(bytes),
    }
}

/// Reads a body up to `limit` bytes.
///
/// # Errors
/// If the connection breaks before. The error's text has no URL.
pub async fn read_start(response: Response, limit: usize) -> Result<BodyStart, BodyError> {
    let mut bytes = Vec::new();
    let is_cut = read_into(&mut bytes, response, limit).await?;
    Ok(BodyStart { bytes, is_cut })
}

/// Returns the part of a body that arrives within a time, up to `limit` bytes, for the text of an
/// error.
pub async fn read_excerpt(response: Response, limit: usize, time: Duration) -> Vec<u8> {
    let mut bytes = Vec::new();
    let _ = timeout(time, read_into(&mut bytes, response, limit)).await;
    bytes
}

/// Returns whether the body has more than `limit` bytes.
async fn read_into(
    bytes: &mut Vec<u8>,
    response: Response,
    limit: usize,
) -> Result<bool, BodyError> {
    let mut pieces = pieces(response);
    while let Some(piece) = pieces.next().await.transpose()? {
        let space = limit - bytes.len();
        bytes.extend_from_slice(&piece[..piece.len().min(space)]);
        if piece.len() > space {
            return Ok(true);
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn response(body: Vec<u8>, encoding: &str) -> Response {
        http::Response::builder().header(CONTENT_ENCODING, encoding).body(body).unwrap().into()
    }

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    #[tokio::test]
    async fn the_limit_counts_decompressed_bytes() {
        for (body, encoding) in [(b"abcd".to_vec(), "identity"), (gzip(b"abcd"), "gzip")] {
            let response = || response(body.clone(), encoding);
            let start = read_start(response(), 3).await.unwrap();
            assert_eq!((&start.bytes[..], start.is_cut), (&b"abc"[..], true), "{encoding}");
            let start = read_start(response(), 4).await.unwrap();
            assert_eq!((&start.bytes[..], start.is_cut), (&b"abcd"[..], false), "{encoding}");
            assert_eq!(
                read_excerpt(response(), 2, Duration::from_secs(1)).await,
                b"ab",
                "{encoding}"
            );
        }
        let bomb = gzip(&vec![0; 10 << 20]);
        assert!(bomb.len() < 64 << 10);
        let read = read_whole(response(bomb, "gzip"), 64 << 10).await;
        assert!(matches!(read, Err(BodyReadError::TooLong(limit)) if limit == 64 << 10));
        assert_eq!(read_whole(response(b"abcd".to_vec(), "identity"), 4).await.unwrap(), b"abcd");
    }
}
