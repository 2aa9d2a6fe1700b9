//! The memory that it takes to decode an image and to scale it down, read from its header before anything is allocated.
//!
//! Decoders believe headers: a GIF of 35 bytes claims 17 GB. The crate `image` counts neither the pixels of
//! `DynamicImage::from_decoder`, nor what the decoders of JPEG and WebP take beside them. So the bound is here.

use agui_agent::files::{image_size, jpeg_segments};
use agui_store::files::ImageSize;

/// Colour profiles and texts of an image of few pixels.
pub(super) const METADATA_BYTES: u64 = 1 << 20;
/// The longer side of the blocks of pixels that a JPEG has, and the rows that a decoder of PNG has twice.
const BLOCK_SIDE: u64 = 32;
/// The segments of a JPEG and the chunks of a PNG before its pixels. Metadata of 20 MB has 320.
const MAX_SEGMENTS: usize = 1000;
/// JPEG: the segment that begins a scan.
const START_OF_SCAN: u8 = 0xda;

/// The memory to decode an image.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ImageMemory {
    pub(super) size: ImageSize,
    /// The most memory, from the bytes of the file to the first copy of a smaller size.
    pub bytes: u64,
}

/// Reads the memory from a header. `None` if the header does not say it: the image is not decoded.
pub(crate) fn image_memory(file: &[u8]) -> Option<ImageMemory> {
    let size = image_size(file)?;
    // At the end there are two copies: 4 and 4 bytes for each pixel, or 3 and 2, because the second one of a large image is smaller.
    let per_pixel = match file {
        [0x89, ..] => png_memory(file)?,
        // The picture, and its frame.
        [b'G', ..] => 8,
        [b'R', ..] => webp_memory(file.get(12..)?, size)?,
        _ => jpeg_memory(file)?,
    };
    let padded = |side: u32| u64::from(side).next_multiple_of(BLOCK_SIDE);
    let pixels = padded(size.width).saturating_mul(padded(size.height));
    let bytes = pixels.saturating_mul(per_pixel).saturating_add(file.len() as u64 + METADATA_BYTES);
    Some(ImageMemory { size, bytes })
}

/// Every kind of PNG can have a transparent colour. Each text before the pixels takes some hundred bytes, however short it is.
fn png_memory(file: &[u8]) -> Option<u64> {
    let (depth, colour) = (*file.get(24)?, *file.get(25)?);
    let mut rest = file.get(8..)?;
    for _ in 0..MAX_SEGMENTS {
        let (head, after) = rest.split_at_checked(8)?;
        if head.ends_with(b"IDAT") {
            return Some(if depth == 16 && !matches!(colour, 0 | 4) { 12 } else { 8 });
        }
        let length = usize::try_from(u32::from_be_bytes(*head.first_chunk()?)).ok()?;
        rest = after.get(length.checked_add(4)?..)?;
    }
    None
}

/// A progressive JPEG, and one of several scans, is in memory as numbers of two bytes for each colour. The decoder looks through
/// all pieces of metadata with each further one.
fn jpeg_memory(file: &[u8]) -> Option<u64> {
    let mut frame: Option<(u8, u8)> = None;
    for (marker, body) in jpeg_segments(file).take(MAX_SEGMENTS) {
        match marker {
            // A second frame would change the size.
            0xc0..=0xc2 if frame.is_some() => return None,
            0xc0..=0xc2 => frame = Some((marker, *body.get(5)?)),
            START_OF_SCAN => {
                let (kind, colours) = frame?;
                let is_streamed = kind != 0xc2 && body.first() == Some(&colours);
                return Some(if is_streamed { 5 } else { 5.max(3 + 2 * u64::from(colours)) });
            }
            // Tables, restarts, applications and comments.
            0xc4 | 0xdb | 0xdd | 0xe0..=0xef | 0xfe => {}
            _ => return None,
        }
    }
    None
}

/// Only lossy WebP is decoded. A lossless image of any size has up to 65,536 groups of tables, and
/// 8 bytes of the file are enough for a table of 68 KB: 0.5 MB take 4 GB.
///
/// The decoder allocates the bytes that a chunk claims to have, and a frame in the size that it
/// claims. So no chunk is longer than the file, and no frame larger than the image.
fn webp_memory(chunks: &[u8], size: ImageSize) -> Option<u64> {
    // The first byte of `VP8X` says whether there is an animation, and transparency.
    let per_pixel = match (chunks.get(..4)?, chunks.get(8)? & 0x12) {
        (b"VP8X", 0x10) => 8,
        (b"VP8X", 0x02 | 0x12) => 12,
        _ => 5,
    };
    let mut lists = vec![chunks];
    while let Some(chunks) = lists.pop() {
        let Some((head, after)) = chunks.split_at_checked(8) else { continue };
        let length = usize::try_from(u32::from_le_bytes(*head.last_chunk()?)).ok()?;
        let (body, _) = after.split_at_checked(length)?;
        lists.push(after.get(length.checked_next_multiple_of(2)?..).unwrap_or_default());
        let is_decoded = match &head[..4] {
            b"VP8L" => false,
            b"ALPH" => body.first()? & 3 == 0,
            b"VP8 " => {
                let side = |at: usize| {
                    Some(u16::from_le_bytes([*body.get(at)?, *body.get(at + 1)?]) & 0x3fff)
                };
                u32::from(side(6)?) <= size.width && u32::from(side(8)?) <= size.height
            }
            b"ANMF" => {
                lists.push(body.get(16..)?);
                true
            }
            _ => true,
        };
        if !is_decoded {
            return None;
        }
    }
    Some(per_pixel)
}

#[cfg(test)]
pub(super) mod tests;
