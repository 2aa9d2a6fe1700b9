//! Shared code of the tests of whole streams: a checker and generators.
//!
//! Every test crate compiles this module for itself and uses a part of it.
#![allow(dead_code, unreachable_pub)]

pub mod checker;
pub mod streams;
