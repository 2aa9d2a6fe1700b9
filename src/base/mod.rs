//! Small rules that every room uses, such as the units of options. Uses no other room.

#[cfg_attr(
    not(any(feature = "postgres", feature = "sqlite")),
    allow(dead_code, reason = "only these stores have few places")
)]
pub(crate) mod fair_share;
pub(crate) mod private_file;
#[cfg_attr(not(feature = "llm"), allow(dead_code, reason = "only servers of models and tools have errors with causes"))]
pub(crate) mod text;
pub(crate) mod trace;
pub(crate) mod units;
