//! Items that only the other crates of the workspace need. Not a part of the interface: they change without notice.

pub use crate::input::DEEP_THINKING;
pub use crate::messages::{MessageIndex, find_call};
pub use crate::patch::JsonPatch;
pub use crate::version::{PROTOCOL_VERSION, VersionSupport, classify_version};
