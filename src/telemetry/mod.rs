//! What operators see.

pub mod logs;
