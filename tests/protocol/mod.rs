//! The protocol: what the decoder reads, and what the encoders write.

pub(crate) mod corpus;
mod decode_properties;
