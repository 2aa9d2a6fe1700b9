//! Each test is a function of a new, empty store.

pub(crate) mod begin;
pub(crate) mod branches;
pub(crate) mod finish;
pub(crate) mod lease;
pub(crate) mod log;
pub(crate) mod read;
pub(crate) mod remove;
