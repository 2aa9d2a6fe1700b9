//! Items that only the other crates of the workspace need. Not a part of the interface: they change without notice.

#[cfg(feature = "config")]
pub use crate::replay::{Replay, ReplayOptions};
#[cfg(feature = "config")]
pub use crate::script::Script;
