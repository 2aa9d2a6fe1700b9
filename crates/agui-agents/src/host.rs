//! What the other crates of the workspace need of this one. Not a part of the interface: it changes without notice.

#[cfg(feature = "config")]
pub use crate::replay::{Replay, ReplayOptions};
#[cfg(feature = "config")]
pub use crate::script::Script;
