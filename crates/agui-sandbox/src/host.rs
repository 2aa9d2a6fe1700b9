//! What the other crates of the workspace need of this one. Not a part of the interface: it changes without notice.

pub use crate::descriptors::close_descriptors_on_exec;
pub use crate::options::TOOL_NAMES;
