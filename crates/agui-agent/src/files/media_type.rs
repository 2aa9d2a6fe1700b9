//! The type and the size of a file, read from its bytes.

use agui_base::text::essence;
use agui_store::files::ImageSize;

/// Returns the type that the beginning of a file shows, if it is more certain than the declared
/// one.
pub fn shown_type(bytes: &[u8], declared: &str) -> Option<&'static str> {
    type_of(bytes).filter(|found| is_believed(found, declared))
}

/// Returns the width and the height of an image: PNG, JPEG, GIF or WebP. Nothing is decoded.
pub fn image_size(bytes: &[u8]) -> Option<ImageSize> {
    let number = |at: usize, count: usize| -> Option<u32> {
        let of_bytes = bytes.get(at..at + count)?;
        Some(of_bytes.iter().rev().fold(0, |number, byte| number << 8 | u32::from(*byte)))
    };
    let (width, height) = match type_of(bytes)? {
        "image/png" => (number(16, 4)?.swap_bytes(), number(20, 4)?.swap_bytes()),
        "image/gif" => (number(6, 2)?, number(8, 2)?),
        "image/webp" => match bytes.get(12..16)? {
            b"VP8X" => (number(24, 3)? + 1, number(27, 3)? + 1),
            b"VP8L" => {
                let bits = number(21, 4)?;
                ((bits & 0x3fff) + 1, (bits >> 14 & 0x3fff) + 1)
            }
            b"VP8 " => (number(26, 2)? & 0x3fff, number(28, 2)? & 0x3fff),
            _ => return None,
        },
        "image/jpeg" => size_of_jpeg(bytes)?,
        _ => return None,
    };
    (width > 0 && height > 0).then_some(ImageSize { width, height })
}

/// Reads the width and the height of the first frame of a JPEG.
fn size_of_jpeg(bytes: &[u8]) -> Option<(u32, u32)> {
    let begins_frame =
        |marker: u8| matches!(marker, 0xc0..=0xc3 | 0xc5..=0xc7 | 0xc9..=0xcb | 0xcd..=0xcf);
    let (_, body) = jpeg_segments(bytes).find(|(marker, _)| begins_frame(*marker))?;
    let number =
        |at: usize| Some(u32::from(u16::from_be_bytes([*body.get(at)?, *body.get(at + 1)?])));
    Some((number(3)?, number(1)?))
}

/// Returns the segments of a JPEG, each with the available part of its body, up to the first
/// invalid segment.
pub fn jpeg_segments(bytes: &[u8]) -> impl Iterator<Item = (u8, &[u8])> {
    let mut rest = bytes.get(2..).unwrap_or_default();
    std::iter::from_fn(move || {
        // Bytes that fill up to a marker.
        while let [0xff, 0xff, ..] = rest {
            rest = &rest[1..];
        }
        let [0xff, marker, high, low, after @ ..] = rest else { return None };
        let length = usize::from(u16::from_be_bytes([*high, *low])).checked_sub(2)?;
        let (body, next) = after.split_at(length.min(after.len()));
        rest = next;
        Some((*marker, body))
    })
}

/// Returns whether the type that bytes show replaces the declared one. Text can begin like any
/// type, and a container of sound or video does not show its exact type.
fn is_believed(found: &str, declared: &str) -> bool {
    let is_sound_or_video =
        |mime_type: &str| mime_type.starts_with("audio/") || mime_type.starts_with("video/");
    let declared = essence(declared);
    let can_be_found = declared.starts_with("image/")
        || is_sound_or_video(&declared)
        || matches!(declared.as_str(), "" | "application/octet-stream" | "application/pdf");
    can_be_found && !(is_sound_or_video(&declared) && is_sound_or_video(found))
}

/// Returns the type that the beginning of a file shows.
fn type_of(bytes: &[u8]) -> Option<&'static str> {
    Some(match bytes {
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => "image/png",
        [0xff, 0xd8, 0xff, ..] => "image/jpeg",
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => "image/gif",
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => "image/webp",
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'A', b'V', b'E', ..] => "audio/wav",
        [b'B', b'M', _, _, _, _, 0, 0, 0, 0, ..] => "image/bmp",
        [b'I', b'I', b'*', 0, ..] | [b'M', b'M', 0, b'*', ..] => "image/tiff",
        [b'%', b'P', b'D', b'F', b'-', ..] => "application/pdf",
        [b'I', b'D', b'3', ..] => "audio/mpeg",
        [b'f', b'L', b'a', b'C', ..] => "audio/flac",
        [b'O', b'g', b'g', b'S', ..] => "audio/ogg",
        [0x1a, 0x45, 0xdf, 0xa3, ..] => "video/webm",
        [_, _, _, _, b'f', b't', b'y', b'p', brand @ ..] => match brand {
            [b'a', b'v', b'i', b'f' | b's', ..] => "image/avif",
            [b'h', b'e', b'i' | b'v', ..]
            | [b'm', b'i', b'f', b'1', ..]
            | [b'm', b's', b'f', b'1', ..] => "image/heic",
            [b'M', b'4', b'A', ..] => "audio/mp4",
            [b'q', b't', b' ', ..] => "video/quicktime",
            _ => "video/mp4",
        },
        _ if is_svg(bytes) => "image/svg+xml",
        _ => return None,
    })
}

fn is_svg(bytes: &[u8]) -> bool {
    let beginning = bytes[..bytes.len().min(1024)].trim_ascii_start();
    beginning.starts_with(b"<svg")
        || beginning.starts_with(b"<?xml") && beginning.windows(4).any(|window| window == b"<svg")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn size(bytes: &[u8]) -> Option<(u32, u32)> {
        image_size(bytes).map(|size| (size.width, size.height))
    }

    #[test]
    fn the_size_of_an_image_is_read_from_its_header() {
        assert_eq!(
            size(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x01\x02\0\0\0\x07\x08\x06"),
            Some((258, 7))
        );
        assert_eq!(size(b"GIF89a\x03\x01\x02\0\xf0"), Some((259, 2)));
        let webp = |chunk: &[u8]| [&b"RIFF\0\0\0\0WEBP"[..], chunk].concat();
        assert_eq!(
            size(&webp(b"VP8 \0\0\0\0\x10\x02\0\x9d\x01\x2a\x40\x01\xf0\0")),
            Some((320, 240))
        );
        assert_eq!(size(&webp(b"VP8L\0\0\0\0\x2f\x3f\xc1\x3b\0")), Some((320, 240)));
        assert_eq!(size(&webp(b"VP8X\0\0\0\0\x10\0\0\0\x3f\x01\0\xef\0\0")), Some((320, 240)));
        let jpeg = |frame: u8| {
            let frame = [0xff, 0xff, frame, 0, 17, 8, 0, 240, 1, 64, 3];
            [&b"\xff\xd8\xff\xe0\0\x06\xff\xc0\0\0"[..], &frame].concat()
        };
        assert_eq!(
            (size(&jpeg(0xc0)), size(&jpeg(0xc2)), size(&jpeg(0xc4))),
            (Some((320, 240)), Some((320, 240)), None)
        );
        assert_eq!((size(b"%PDF-1.7"), size(b"GIF89a\0\0\0\0"), size(b"")), (None, None, None));
    }

    proptest! {
        #[test]
        fn no_bytes_make_reading_fail(
            bytes in prop::collection::vec(any::<u8>(), 0..60),
            beginning in prop::sample::select(vec![
                &b""[..], b"\xff\xd8\xff\xe0\0\x04\0\0", b"RIFF\0\0\0\0WEBPVP8", b"\x89PNG\r\n\x1a\n", b"GIF89a",
            ]),
        ) {
            let _ = image_size(&[beginning, &bytes].concat());
        }
    }
}
