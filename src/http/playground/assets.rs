//! The built files of the page.

use std::{io::Write as _, sync::LazyLock};

use axum::http::HeaderValue;
use bytes::Bytes;
use flate2::{Compression, write::GzEncoder};
use sha2::{Digest as _, Sha256};

/// Hashed and compressed for the first request, because most servers never show the page.
pub(super) static ASSETS: LazyLock<[Asset; 4]> = LazyLock::new(|| {
    [
        Asset::new("", "text/html; charset=utf-8", include_bytes!("dist/index.html")),
        Asset::new("main.js", "text/javascript; charset=utf-8", include_bytes!("dist/main.js")),
        Asset::new("main.css", "text/css; charset=utf-8", include_bytes!("dist/main.css")),
        Asset::new("icon.svg", "image/svg+xml", include_bytes!("dist/icon.svg")),
    ]
});

/// A file of the page.
pub(super) struct Asset {
    /// The name below the path of the page. That of the page itself is empty.
    pub(super) name: &'static str,
    pub(super) media_type: &'static str,
    pub(super) content: &'static [u8],
    /// The content, compressed.
    pub(super) gzip: Bytes,
    /// A weak one, because it stands for both encodings of the content.
    pub(super) etag: HeaderValue,
}

impl Asset {
    fn new(name: &'static str, media_type: &'static str, content: &'static [u8]) -> Self {
        let hash: String = Sha256::digest(content).iter().take(12).map(|byte| format!("{byte:02x}")).collect();
        let etag =
            HeaderValue::try_from(format!("W/\"{hash}\"")).unwrap_or_else(|_| HeaderValue::from_static("W/\"\""));
        Self { name, media_type, content, gzip: compress(content), etag }
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

    #[test]
    fn the_page_has_at_most_200_kb_compressed() {
        let total: usize = ASSETS.iter().map(|asset| asset.gzip.len()).sum();
        assert!(total <= MAX_COMPRESSED_BYTES, "{total} bytes");
    }

    #[test]
    fn a_compressed_file_has_the_content() {
        for asset in &*ASSETS {
            let mut content = Vec::new();
            flate2::read::GzDecoder::new(&*asset.gzip).read_to_end(&mut content).unwrap();
            assert!(content == asset.content, "{}", asset.name);
        }
    }
}
