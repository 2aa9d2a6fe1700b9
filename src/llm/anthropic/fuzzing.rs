//! Makes a decoder for the fuzz targets.

use super::decoder::{MessageDecoder, PausedContent};
use crate::llm::transport::Decoder;

pub(in crate::llm) fn decoder(is_recorded: bool) -> Box<dyn Decoder> {
    let decoder = MessageDecoder::new("m");
    Box::new(if is_recorded { decoder.recording(PausedContent::default()) } else { decoder })
}
