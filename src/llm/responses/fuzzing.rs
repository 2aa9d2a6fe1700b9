//! Makes a decoder for the fuzz targets.

use super::decoder::ResponsesDecoder;
use crate::llm::transport::Decoder;

pub(in crate::llm) fn decoder() -> Box<dyn Decoder> {
    Box::new(ResponsesDecoder::new("m"))
}
