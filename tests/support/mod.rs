//! What the tests of whole streams share: a checker of streams, and generators of streams.
//!
//! Every test crate compiles this module for itself and uses a part of it.
#![allow(dead_code, unreachable_pub)]

pub mod checker;
pub mod streams;
