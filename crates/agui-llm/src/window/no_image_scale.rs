//! The place of `image_scale` in a build without the feature `image`: an image that is too large
//! for a model is left out of its requests.

use std::sync::Arc;

/// Scales no image.
///
/// # Errors
/// The reason, for people and the model.
pub(super) async fn scale_down(
    _owner: &Arc<str>,
    _base64: &mut String,
    _mime_type: &mut String,
    _side: Option<u32>,
    _chars: Option<usize>,
) -> Result<(), String> {
    Err("the image is too large, and cannot be scaled down: this program was built without the \
         feature \"image\""
        .to_owned())
}
