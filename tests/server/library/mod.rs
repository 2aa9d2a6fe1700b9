//! The library as applications use it: the builder, Rust parts in a configuration, a mounted router, the start of the
//! command.

mod builder;
mod configured;
mod continued;
mod mounted;
mod start;

use crate::support::running as support;
