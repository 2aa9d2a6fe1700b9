//! JSON Schemas that others wrote: tool servers, remote agents, models.
//!
//! A schema of a few hundred bytes can describe 2^36 checks: `allOf` with two references a level,
//! 36 levels. So [`check_size`] limits a schema with its references resolved when it arrives,
//! [`work::count_steps`] counts what a check of one value will do before it begins, and checks that
//! are not small run outside of the async threads, a few at a time, with a deadline. Patterns are
//! matched in linear time. No reference is fetched.

mod bounded;
mod patterns;
mod references;
mod size;
mod work;

pub use bounded::{BoundedSchema, compile_response_schema};
pub use patterns::remove_unsupported_patterns;
pub use size::{SchemaLimits, check_size};
