//! Items that only the other crates of the workspace need. Not a part of the interface: they change without notice.

pub use crate::descriptors::close_descriptors_on_exec;
pub use crate::options::TOOL_NAMES;
