//! The contract, sentence by sentence.

pub(crate) mod begin;
pub(crate) mod content;
pub(crate) mod finish;
pub(crate) mod lease;
pub(crate) mod log;
pub(crate) mod read;
pub(crate) mod remove;
