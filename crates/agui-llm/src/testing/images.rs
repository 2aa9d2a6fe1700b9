//! The scaling of images, for its fuzz target.

use crate::window::{image_memory::image_memory, image_scale};

/// Returns the most memory that scaling an image down takes, by its header.
pub fn image_bytes(file: &[u8]) -> Option<u64> {
    image_memory(file).map(|memory| memory.bytes)
}

/// Scales an image down, whatever memory it takes. Returns whether that succeeds.
pub fn scale(file: &[u8], side: u32) -> bool {
    image_memory(file)
        .is_some_and(|memory| image_scale::scale(file.to_vec(), memory, Some(side), None).is_ok())
}
