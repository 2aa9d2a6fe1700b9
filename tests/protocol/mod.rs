//! The protocol: what the decoder reads, what the encoders write, and the names that the server adds.

pub(crate) mod corpus;
mod decode_properties;
mod own_names;
