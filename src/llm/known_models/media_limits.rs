//! The media that providers take in a request.

use serde::Deserialize;

/// The limits of one provider for the media of a request; `None` is no limit that is known. Larger images are scaled down,
/// and the oldest media leave a request that has too many, before [`Model::stream`](crate::llm::Model::stream) gets it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct MediaLimits {
    /// The characters of an image in base64.
    pub image_chars: Option<usize>,
    /// The pixels of an image's longer side.
    pub image_side: Option<u32>,
    /// The number of images above which `side_of_many` counts.
    pub few_images: Option<usize>,
    /// The pixels of the longer side of each image, if there are many.
    pub side_of_many: Option<u32>,
    /// The number of media of all kinds.
    pub media: Option<usize>,
    /// The characters of all media together in base64.
    pub media_chars: Option<usize>,
}
