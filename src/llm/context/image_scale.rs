//! Images in the size that a provider takes. They are decoded beside the async threads, two at a time, with a limit for their
//! memory, so that a small file which describes a huge image costs nothing.

use std::{
    collections::VecDeque,
    hash::{BuildHasher as _, RandomState},
    io::Cursor,
    sync::{Arc, LazyLock},
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use image::{
    DynamicImage, ImageDecoder as _, ImageError, ImageFormat, ImageReader, Limits, codecs::jpeg::JpegEncoder,
    metadata::Orientation,
};
use parking_lot::Mutex;
use tokio::sync::Semaphore;

use crate::{base::base64_text::LENIENT, files::image_size};

/// The characters of base64 in which the size of an image is looked for. Photos have a preview before it.
const BEGINNING: usize = 256 << 10;
/// The memory of a decoded image: about 80 million pixels without transparency.
const MAX_DECODED: u64 = 256 << 20;
const JPEG_QUALITY: u8 = 85;
/// The scaled images that are kept, in characters: a conversation sends them with each request.
const MAX_KEPT: usize = 32 << 20;

static PERMITS: Semaphore = Semaphore::const_new(2);
static KEPT: LazyLock<Mutex<Kept>> = LazyLock::new(Mutex::default);

/// An image for a request.
pub(super) struct ScaledImage {
    pub(super) base64: String,
    pub(super) mime_type: &'static str,
}

/// Images that were scaled, the oldest first.
#[derive(Default)]
struct Kept {
    hasher: RandomState,
    images: VecDeque<(u64, Arc<ScaledImage>)>,
    chars: usize,
}

impl Kept {
    fn add(&mut self, key: u64, image: Arc<ScaledImage>) {
        self.chars += image.base64.len();
        self.images.push_back((key, image));
        while self.chars > MAX_KEPT
            && let Some((_, oldest)) = self.images.pop_front()
        {
            self.chars -= oldest.base64.len();
        }
    }
}

/// Returns whether an image in base64 has more characters or a longer side. One whose size cannot be read is not larger.
pub(super) fn is_larger(base64: &str, side: Option<u32>, chars: Option<usize>) -> bool {
    if chars.is_some_and(|chars| base64.len() > chars) {
        return true;
    }
    let Some(side) = side else { return false };
    let beginning = &base64[..base64.floor_char_boundary(BEGINNING)];
    let Ok(beginning) = LENIENT.decode(beginning) else { return false };
    image_size(&beginning).is_some_and(|size| size.width.max(size.height) > side)
}

/// Returns an image with at most this longer side and these characters.
///
/// # Errors
/// A reason for people and the model.
pub(super) async fn scaled(
    base64: String,
    side: Option<u32>,
    chars: Option<usize>,
) -> Result<Arc<ScaledImage>, String> {
    let _permit = PERMITS.acquire().await;
    let task = tokio::task::spawn_blocking(move || {
        let key = KEPT.lock().hasher.hash_one((&base64, side, chars));
        let known = KEPT.lock().images.iter().find(|(kept, _)| *kept == key).map(|(_, image)| image.clone());
        if let Some(image) = known {
            return Ok(image);
        }
        let bytes = LENIENT.decode(base64).map_err(|_| "its data is not base64".to_owned())?;
        let image =
            decode(bytes).map_err(|error| format!("the image is too large, and cannot be scaled down: {error}"))?;
        let image = Arc::new(encode_within(image, side, chars)?);
        KEPT.lock().add(key, image.clone());
        Ok(image)
    });
    task.await.unwrap_or_else(|_| Err("the image is too large, and cannot be read".to_owned()))
}

/// Decodes an image, as a person sees it: cameras turn it by a number beside the pixels.
fn decode(bytes: Vec<u8>) -> Result<DynamicImage, ImageError> {
    let mut reader = ImageReader::new(Cursor::new(bytes)).with_guessed_format()?;
    let mut limits = Limits::default();
    limits.max_alloc = Some(MAX_DECODED);
    reader.limits(limits);
    let mut decoder = reader.into_decoder()?;
    let orientation = decoder.orientation().unwrap_or(Orientation::NoTransforms);
    let mut image = DynamicImage::from_decoder(decoder)?;
    image.apply_orientation(orientation);
    Ok(image)
}

fn encode_within(mut image: DynamicImage, side: Option<u32>, chars: Option<usize>) -> Result<ScaledImage, String> {
    let mut side = side.unwrap_or(u32::MAX).min(image.width().max(image.height()));
    while side > 0 {
        if image.width().max(image.height()) > side {
            image = image.thumbnail(side, side);
        }
        let (bytes, mime_type) = encode(&image).map_err(|error| {
            tracing::warn!(%error, "an image that is too large for a model could not be scaled down");
            "the image is too large, and cannot be scaled down".to_owned()
        })?;
        let base64 = STANDARD.encode(bytes);
        if chars.is_none_or(|chars| base64.len() <= chars) {
            return Ok(ScaledImage { base64, mime_type });
        }
        side = side / 4 * 3;
    }
    Err("the image is too large, also when it is scaled down".to_owned())
}

/// Writes a PNG if there is transparency, and a JPEG otherwise.
fn encode(image: &DynamicImage) -> Result<(Vec<u8>, &'static str), ImageError> {
    let mut bytes = Cursor::new(Vec::new());
    let is_transparent = image.color().has_alpha() && image.to_rgba8().pixels().any(|pixel| pixel.0[3] < u8::MAX);
    if is_transparent {
        image.write_to(&mut bytes, ImageFormat::Png)?;
        return Ok((bytes.into_inner(), "image/png"));
    }
    image.to_rgb8().write_with_encoder(JpegEncoder::new_with_quality(&mut bytes, JPEG_QUALITY))?;
    Ok((bytes.into_inner(), "image/jpeg"))
}

#[cfg(test)]
pub(super) mod tests;
