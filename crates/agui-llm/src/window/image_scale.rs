//! Scales images down to the size that a provider takes. Images are decoded on blocking threads,
//! within memory that owners share, and only if their headers claim little of it: a small file can
//! describe a huge image.

use std::{
    collections::VecDeque,
    hash::{BuildHasher as _, RandomState},
    io::Cursor,
    sync::{Arc, LazyLock},
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use image::{
    DynamicImage, ImageDecoder as _, ImageError, ImageFormat, ImageReader, Limits, RgbaImage,
    codecs::jpeg::JpegEncoder, metadata::Orientation,
};
use parking_lot::Mutex;
use tokio::task::spawn_blocking;

use super::image_memory::{ImageMemory, METADATA_BYTES, image_memory};
use agui_base::{
    base64_text::LENIENT,
    permits::{ANONYMOUS, Permits},
};
use agui_store::files::ImageSize;

/// The memory that all images together take while they are scaled. One of several owners has half.
const MAX_BYTES: usize = 256 << 20;
/// The memory of an image: a photo of 24 million pixels, or 16 million with transparency.
const MAX_IMAGE_BYTES: usize = MAX_BYTES / 2;
/// The least that an image takes of the memory, so that an owner scales two at a time.
const MIN_IMAGE_BYTES: usize = MAX_IMAGE_BYTES / 2;
/// The beginning of a reason.
const UNSCALABLE: &str = "the image is too large, and cannot be scaled down";
const JPEG_QUALITY: u8 = 85;
/// The scaled images that are kept, in characters: a conversation sends them with each request.
const MAX_KEPT: usize = 32 << 20;
/// The kept characters of one of several owners.
const MAX_KEPT_OF_OWNER: usize = MAX_KEPT / 4;

/// Scales all images of the process.
static SCALER: LazyLock<Scaler> = LazyLock::new(Scaler::new);

/// An image for a request.
pub(crate) struct ScaledImage {
    base64: String,
    mime_type: &'static str,
}

/// Scales images within a budget of memory, and keeps them for their owners.
struct Scaler {
    memory: Arc<Permits>,
    kept: Arc<Mutex<Kept>>,
}

/// Scaled images, the oldest first. Each belongs to one owner, so that the duration of a request
/// tells nothing about others' images.
#[derive(Default)]
struct Kept {
    hasher: RandomState,
    images: VecDeque<KeptImage>,
    chars: usize,
}

struct KeptImage {
    owner: Arc<str>,
    key: u64,
    image: Arc<ScaledImage>,
}

/// An image that is asked for.
enum Begun {
    Known(Arc<ScaledImage>),
    New { key: u64, memory: ImageMemory, base64: String },
}

impl Kept {
    fn find(&self, owner: &str, key: u64) -> Option<Arc<ScaledImage>> {
        let found = self.images.iter().find(|kept| kept.key == key && *kept.owner == *owner);
        found.map(|kept| kept.image.clone())
    }

    fn add(&mut self, owner: &Arc<str>, key: u64, image: Arc<ScaledImage>) {
        self.chars += image.base64.len();
        self.images.push_back(KeptImage { owner: owner.clone(), key, image });
        while self.chars_of(owner) > MAX_KEPT_OF_OWNER && **owner != *ANONYMOUS {
            self.remove_oldest(|kept| kept.owner == *owner);
        }
        while self.chars > MAX_KEPT {
            self.remove_oldest(|_| true);
        }
    }

    fn chars_of(&self, owner: &str) -> usize {
        self.images
            .iter()
            .filter(|kept| *kept.owner == *owner)
            .map(|kept| kept.image.base64.len())
            .sum()
    }

    fn remove_oldest(&mut self, is_chosen: impl Fn(&KeptImage) -> bool) {
        let oldest = self.images.iter().position(is_chosen).and_then(|at| self.images.remove(at));
        self.chars -= oldest.map_or(0, |oldest| oldest.image.base64.len());
    }
}

/// Scales an owner's image down to at most this longer side and these characters.
///
/// # Errors
/// A reason for people and the model.
pub(super) async fn scale_down(
    owner: &Arc<str>,
    base64: &mut String,
    mime_type: &mut String,
    side: Option<u32>,
    chars: Option<usize>,
) -> Result<(), String> {
    let image = SCALER.scaled(owner, std::mem::take(base64), side, chars).await?;
    base64.clone_from(&image.base64);
    image.mime_type.clone_into(mime_type);
    Ok(())
}

impl Scaler {
    fn new() -> Self {
        Self { memory: Permits::new(MAX_BYTES, Some(MAX_IMAGE_BYTES)), kept: Arc::default() }
    }

    async fn scaled(
        &self,
        owner: &Arc<str>,
        base64: String,
        side: Option<u32>,
        chars: Option<usize>,
    ) -> Result<Arc<ScaledImage>, String> {
        let (kept, asking) = (self.kept.clone(), owner.clone());
        let begun = blocking(move || {
            let hasher = kept.lock().hasher.clone();
            let key = hasher.hash_one((&base64, side, chars));
            let known = kept.lock().find(&asking, key);
            match known {
                Some(image) => Ok(Begun::Known(image)),
                None => Ok(Begun::New { key, memory: memory_of(&base64)?, base64 }),
            }
        });
        let (key, memory, base64) = match begun.await? {
            Begun::Known(image) => return Ok(image),
            Begun::New { key, memory, base64 } => (key, memory, base64),
        };
        let permit = self.memory.take(owner, memory.permit_bytes()).await;
        let (kept, asking) = (self.kept.clone(), owner.clone());
        blocking(move || {
            // Scaling continues, with its permit, when its run is cancelled.
            let _permit = permit;
            let image = Arc::new(scale(decoded(&base64)?, memory, side, chars)?);
            kept.lock().add(&asking, key, image.clone());
            Ok(image)
        })
        .await
    }
}

impl ImageMemory {
    fn permit_bytes(&self) -> usize {
        usize::try_from(self.bytes)
            .map_or(MAX_IMAGE_BYTES, |bytes| bytes.clamp(MIN_IMAGE_BYTES, MAX_IMAGE_BYTES))
    }
}

/// Runs work on a blocking thread. If a decoder panics, only its image fails.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> Result<T, String> {
    spawn_blocking(work).await.unwrap_or_else(|_| Err(format!("{UNSCALABLE}: it is damaged")))
}

fn decoded(base64: &str) -> Result<Vec<u8>, String> {
    LENIENT.decode(base64).map_err(|_| "its data is not base64".to_owned())
}

/// Returns the memory of an image, unless that is more than one image may take.
fn memory_of(base64: &str) -> Result<ImageMemory, String> {
    let memory = image_memory(&decoded(base64)?).ok_or_else(|| {
        format!("{UNSCALABLE}: its header does not say how much memory that takes")
    })?;
    if memory.bytes <= MAX_IMAGE_BYTES as u64 {
        return Ok(memory);
    }
    let ImageSize { width, height } = memory.size;
    Err(format!(
        "{UNSCALABLE}: {width} × {height} pixels take more than {} MiB of memory",
        MAX_IMAGE_BYTES >> 20
    ))
}

/// Scales an image down.
///
/// # Errors
/// A reason for people and the model.
pub(crate) fn scale(
    file: Vec<u8>,
    memory: ImageMemory,
    side: Option<u32>,
    chars: Option<usize>,
) -> Result<ScaledImage, String> {
    let (image, orientation) =
        decode(file, memory).map_err(|error| format!("{UNSCALABLE}: {error}"))?;
    encode_within(image, orientation, side, chars)
}

/// Decodes an image, with the orientation that cameras store beside the pixels.
fn decode(file: Vec<u8>, memory: ImageMemory) -> Result<(DynamicImage, Orientation), ImageError> {
    let ImageSize { width, height } = memory.size;
    let mut limits = Limits::default();
    // Guards against a decoder that reads another size than was counted.
    (limits.max_image_width, limits.max_image_height) = (Some(width), Some(height));
    // Beside the pixels, which `from_decoder` does not count: the frame of a GIF, the profile of a PNG.
    limits.max_alloc = Some(4 * u64::from(width) * u64::from(height) + METADATA_BYTES);
    let mut reader = ImageReader::new(Cursor::new(file)).with_guessed_format()?;
    reader.limits(limits);
    let mut decoder = reader.into_decoder()?;
    let orientation = decoder.orientation().unwrap_or(Orientation::NoTransforms);
    Ok((in_eight_bits(DynamicImage::from_decoder(decoder)?), orientation))
}

/// Returns an image with transparency only if it has some. Each conversion has two copies at most.
fn in_eight_bits(image: DynamicImage) -> DynamicImage {
    let is_opaque = |pixels: &RgbaImage| pixels.pixels().all(|pixel| pixel.0[3] == u8::MAX);
    match image {
        image @ (DynamicImage::ImageLuma8(_) | DynamicImage::ImageRgb8(_)) => image,
        image if !image.color().has_alpha() => image.into_rgb8().into(),
        image => match image.into_rgba8() {
            pixels if is_opaque(&pixels) => DynamicImage::from(pixels).into_rgb8().into(),
            pixels => pixels.into(),
        },
    }
}

fn encode_within(
    mut image: DynamicImage,
    mut orientation: Orientation,
    side: Option<u32>,
    chars: Option<usize>,
) -> Result<ScaledImage, String> {
    let longer = image.width().max(image.height());
    let mut side = side.unwrap_or(u32::MAX).min(longer);
    if image.as_bytes().len() > MIN_IMAGE_BYTES / 2
        && (side < longer || orientation != Orientation::NoTransforms)
    {
        // There is memory for a smaller copy of a large image, and not for one of about its size.
        side = side.min(longer - longer / 4);
    }
    while side > 0 {
        if image.width().max(image.height()) > side {
            image = image.thumbnail(side, side);
        }
        image.apply_orientation(std::mem::replace(&mut orientation, Orientation::NoTransforms));
        let (bytes, mime_type) = encode(&image).map_err(|error| {
            tracing::warn!(%error, "an image that is too large for a model could not be scaled down");
            UNSCALABLE.to_owned()
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
    if image.color().has_alpha() {
        image.write_to(&mut bytes, ImageFormat::Png)?;
        return Ok((bytes.into_inner(), "image/png"));
    }
    image.write_with_encoder(JpegEncoder::new_with_quality(&mut bytes, JPEG_QUALITY))?;
    Ok((bytes.into_inner(), "image/jpeg"))
}

#[cfg(test)]
pub(super) mod tests;
