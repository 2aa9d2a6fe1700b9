//! Makes a decoder for the fuzz targets.

use super::decoder::GeminiDecoder;
use crate::llm::transport::Decoder;

pub(in crate::llm) fn decoder() -> Box<dyn Decoder> {
    Box::new(GeminiDecoder::new("m"))
}
