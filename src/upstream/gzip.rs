//! Reads the bodies of responses, compressed or not.

use std::{error::Error as StdError, io::Write as _};

use async_stream::try_stream;
use bytes::Bytes;
use flate2::write::GzDecoder;
use futures::{StreamExt as _, stream::BoxStream};
use reqwest::{Response, header::CONTENT_ENCODING};

/// Bytes become at most about a thousand times as many.
const STEP: usize = 256;

/// Returns the body of a response in pieces. Requests ask for no compression; some servers compress anyway.
pub fn body(response: Response) -> BoxStream<'static, Result<Bytes, Box<dyn StdError + Send + Sync>>> {
    let encoding = response.headers().get(CONTENT_ENCODING).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let is_gzip = ["gzip", "x-gzip"].iter().any(|name| encoding.trim().eq_ignore_ascii_case(name));
    // The URL may contain a secret.
    let mut pieces = response.bytes_stream().map(|piece| piece.map_err(|error| error.without_url().into())).boxed();
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
