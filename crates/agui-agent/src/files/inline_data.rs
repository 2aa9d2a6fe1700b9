//! Inline data as people write it: base64 with line ends, in the URL alphabet or without padding,
//! and types that contradict the bytes.

use std::borrow::Cow;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use percent_encoding::percent_decode_str;

use super::shown_type;
use agui_base::base64_text::{LENIENT, is_standard};
use agui_protocol::PartSource;

/// The characters of base64 that the type is read from: 1 KiB of the file.
const BEGINNING: usize = 1368;

/// Writes data in the standard form of base64, with the type that the bytes show, if any. Data that
/// is not base64 stays unchanged.
pub fn correct(source: &mut PartSource) {
    let PartSource::Data { value, mime_type } = source else { return };
    // Nearly all data is in that form, and some megabytes long.
    if !is_standard(value) {
        match decode(value) {
            Some(bytes) => *value = STANDARD.encode(bytes),
            None => return,
        }
    }
    let beginning = LENIENT.decode(&value[..value.len().min(BEGINNING)]).unwrap_or_default();
    if let Some(found) = shown_type(&beginning, mime_type) {
        found.clone_into(mime_type);
    }
}

/// Returns the bytes of inline data and their declared type, or `None` for another source or
/// invalid base64.
pub(super) fn decoded(source: &PartSource) -> Option<(Vec<u8>, String)> {
    let of_url = data_of_url(source);
    let PartSource::Data { value, mime_type } = of_url.as_ref().unwrap_or(source) else {
        return None;
    };
    let bytes = if is_standard(value) { STANDARD.decode(value).ok() } else { decode(value) }?;
    Some((bytes, mime_type.clone()))
}

/// Returns the data of a `data:` URL (RFC 2397), even if a page sent the URL as inline data, or
/// `None` for another source. A MIME type of the source replaces the URL's own.
pub fn data_of_url(source: &PartSource) -> Option<PartSource> {
    let (url, mime_type) = match source {
        PartSource::Url { value, mime_type } => (value, mime_type.as_deref()),
        PartSource::Data { value, mime_type } => {
            (value, Some(&**mime_type).filter(|mime_type| !mime_type.is_empty()))
        }
        PartSource::File { .. } => return None,
    };
    let (scheme, rest) = url.split_once(':')?;
    let (head, body) = rest.split_once(',').filter(|_| scheme.eq_ignore_ascii_case("data"))?;
    let (declared, value) = match head.strip_suffix(";base64") {
        Some(declared) => (declared, percent_decode_str(body).decode_utf8_lossy().into_owned()),
        None => (head, STANDARD.encode(Cow::from(percent_decode_str(body)))),
    };
    let mime_type = mime_type.unwrap_or(declared);
    let mime_type = if mime_type.is_empty() { "text/plain" } else { mime_type };
    Some(PartSource::Data { value, mime_type: mime_type.to_owned() })
}

fn decode(value: &str) -> Option<Vec<u8>> {
    let written = value.bytes().filter(|byte| !byte.is_ascii_whitespace());
    let standard: Vec<u8> = written
        .map(|byte| match byte {
            b'-' => b'+',
            b'_' => b'/',
            byte => byte,
        })
        .collect();
    LENIENT.decode(standard).ok()
}

#[cfg(test)]
mod tests {
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
    use proptest::prelude::*;

    use super::*;

    fn read(value: &str, mime_type: &str) -> PartSource {
        let mut source = data(value, mime_type);
        correct(&mut source);
        source
    }

    fn data(value: impl Into<String>, mime_type: &str) -> PartSource {
        PartSource::Data { value: value.into(), mime_type: mime_type.to_owned() }
    }

    #[test]
    fn the_type_is_that_of_the_bytes() {
        for (bytes, declared, expected) in [
            (&b"\x89PNG\r\n\x1a\n"[..], "image/jpeg", "image/png"),
            (b"\xff\xd8\xff\xe0", "IMAGE/png; x=y", "image/jpeg"),
            (b"GIF89a", "application/octet-stream", "image/gif"),
            (b"RIFF\0\0\0\0WEBPVP8 ", "image/png", "image/webp"),
            (b"\0\0\0\x18ftypheic", "image/jpeg", "image/heic"),
            (b"\0\0\0\x18ftypavif", "image/jpeg", "image/avif"),
            (b"BM\x01\0\0\0\0\0\0\0", "image/png", "image/bmp"),
            (b"II*\0", "image/png", "image/tiff"),
            (b"<?xml version='1.0'?>\n<svg/>", "image/png", "image/svg+xml"),
            (b"%PDF-1.7", "image/png", "application/pdf"),
            (b"\x89PNG\r\n\x1a\n", "application/pdf", "image/png"),
            (b"RIFF\0\0\0\0WAVE", "audio/x-wav", "audio/x-wav"),
            (b"\0\0\0\x18ftypisom", "", "video/mp4"),
            (b"%PDF- is how a PDF begins", "text/plain", "text/plain"),
            (b"\0", "image/png", "image/png"),
        ] {
            let value = STANDARD.encode(bytes);
            assert_eq!(
                read(&value, declared),
                data(value.as_str(), expected),
                "{declared}: {bytes:?}"
            );
        }
    }

    #[test]
    fn what_is_not_base64_stays_as_it_is() {
        for value in ["!", "AAAAA", "A", "A=A=", "é"] {
            assert_eq!(read(value, "image/png"), data(value, "image/png"));
        }
    }

    proptest! {
        #[test]
        fn base64_is_read_as_people_write_it(
            bytes in prop::collection::vec(any::<u8>(), 0..200), width in 1_usize..80,
        ) {
            let standard = STANDARD.encode(&bytes);
            for written in [standard.clone(), URL_SAFE_NO_PAD.encode(&bytes)] {
                let lines: Vec<&[u8]> = written.as_bytes().chunks(width).collect();
                let lines = String::from_utf8(lines.join(&b"\r\n"[..])).unwrap();
                prop_assert_eq!(read(&lines, "text/plain"), data(standard.as_str(), "text/plain"));
            }
        }
    }
}
