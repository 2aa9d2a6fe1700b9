//! Small rules that every room uses, such as the units of options. Uses no other room.

pub(crate) mod private_file;
#[cfg_attr(not(feature = "llm"), allow(dead_code, reason = "only servers of models and tools have errors with causes"))]
pub(crate) mod text;
pub(crate) mod trace;
pub(crate) mod units;
