//! The built files of the page.

use std::{io::Write as _, sync::LazyLock};

use axum::http::HeaderValue;
use bytes::Bytes;
use flate2::{Compression, write::GzEncoder};

use crate::http::etag::etag_of;

/// Hashed and compressed for the first request, because most servers never show the page.
pub(super) static ASSETS: LazyLock<Assets> = LazyLock::new(|| Assets {
    page: Asset::new("text/html; charset=utf-8", include_bytes!("dist/index.html")),
    script: Asset::new("text/javascript; charset=utf-8", include_bytes!("dist/main.js")),
    style: Asset::new("text/css; charset=utf-8", include_bytes!("dist/main.css")),
    icon: Asset::new("image/svg+xml", include_bytes!("dist/icon.svg")),
});

pub(super) struct Assets {
    pub(super) page: Asset,
    pub(super) script: Asset,
    pub(super) style: Asset,
    pub(super) icon: Asset,
}

/// A file of the page.
pub(super) struct Asset {
    pub(super) media_type: &'static str,
    pub(super) content: &'static [u8],
    /// The content, compressed.
    pub(super) gzip: Bytes,
    pub(super) etag: HeaderValue,
}

impl Asset {
    fn new(media_type: &'static str, content: &'static [u8]) -> Self {
        Self { media_type, content, gzip: compress(content), etag: etag_of(content) }
    }
}

fn compress(content: &[u8]) -> Bytes {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    // Writing to memory does not fail. An empty result is not sent.
    let compressed = encoder.write_all(content).and_then(|()| encoder.finish());
    compressed.unwrap_or_default().into()
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    /// The limit for the page with all of its files.
    const MAX_COMPRESSED_BYTES: usize = 200_000;

    fn assets() -> [&'static Asset; 4] {
        let Assets { page, script, style, icon } = &*ASSETS;
        [page, script, style, icon]
    }

    #[test]
    fn the_page_has_at_most_200_kb_compressed() {
        let total: usize = assets().iter().map(|asset| asset.gzip.len()).sum();
        assert!(total <= MAX_COMPRESSED_BYTES, "{total} bytes");
    }

    #[test]
    fn a_compressed_file_has_the_content() {
        for asset in assets() {
            let mut content = Vec::new();
            flate2::read::GzDecoder::new(&*asset.gzip).read_to_end(&mut content).unwrap();
            assert!(content == asset.content, "{}", asset.media_type);
        }
    }
}
